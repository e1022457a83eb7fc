//! Signatures of thinking blocks, which clients replay as they are.
//!
//! Where a client does not want to see the thinking, the signature carries it, so that the next
//! turn's prompt is what the model wrote and the prefix cache is hit.

use base64::{Engine, prelude::BASE64_STANDARD};

/// Tells our signatures from others'; the digit is the version of what follows.
const MAGIC: &[u8] = b"macmlx:1:";

/// A signature from which `text` can be restored; never empty, also where `text` is.
pub(super) fn carrying(text: &str) -> String {
    BASE64_STANDARD.encode([MAGIC, text.as_bytes()].concat())
}

/// The text a signature carries. `None`: none, or the signature is not ours.
pub(super) fn restore(signature: &str) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(signature).ok()?;
    let text = std::str::from_utf8(bytes.strip_prefix(MAGIC)?).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_comes_back_from_its_signature() {
        for text in ["a", "Grüße \u{1f980}\n\"quoted\"", &"long ".repeat(10_000)] {
            assert_eq!(restore(&carrying(text)).as_deref(), Some(text));
        }
    }

    #[test]
    fn other_signatures_carry_nothing() {
        assert!(!carrying("").is_empty());
        let cut = &carrying("abc")[..10];
        for signature in [
            &*carrying(""),
            "",
            "c2ln",
            "EqQBCkgIARAB",
            "not base64!",
            cut,
        ] {
            assert_eq!(restore(signature), None, "{signature}");
        }
    }
}
