//! Random text that cannot be guessed.

use std::io;

/// Bytes of randomness in a secret.
const BYTES: usize = 32;

/// Characters of [`random`].
pub(crate) const LENGTH: usize = BYTES * 2;

/// A fresh secret in hexadecimal.
pub(crate) fn random() -> io::Result<String> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_equal() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert_eq!(one.len(), LENGTH);
        assert_ne!(one, other);
    }
}
