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
    Ok(hexadecimal(&bytes))
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

/// Bytes written as [`hexadecimal`] does; `None` if they are not `N`.
pub(crate) fn from_hexadecimal<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits: Vec<u8> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    if rest.is_empty() {
        bytes.try_into().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_as_text() {
        assert_eq!(hexadecimal(&[0, 0xAF, 0x10]), "00af10");
        assert_eq!(from_hexadecimal::<3>("00af10"), Some([0, 0xAF, 0x10]));
        for wrong in ["", "00af1", "00af1g", "00af1000"] {
            assert_eq!(from_hexadecimal::<3>(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_two_are_equal() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert_eq!(one.len(), LENGTH);
        assert_ne!(one, other);
    }
}
