//! Percent-encoding, as existing macMLX installations name files and folders by it.

use std::fmt::Write;

/// What stands as it is beside letters and digits: all that may be in the path of a URL, but `/`.
const PLAIN: &[u8] = b"-._~!$&'()*+,;=:@";

/// Any text as one name of a file.
pub(crate) fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

/// The text that was encoded; what is no escape stands for itself.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let escaped = (bytes[index] == b'%')
            .then(|| text.get(index + 1..index + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(escaped.unwrap_or(bytes[index]));
        index += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_become_names_of_files() {
        assert_eq!(
            encode("mlx-community/Qwen3-8B-4bit"),
            "mlx-community%2FQwen3-8B-4bit"
        );
        assert_eq!(encode("a b%\u{e9}"), "a%20b%25%C3%A9");
        for text in ["owner/repo", "with space/%41", "\u{4f60}/\u{597d}", ""] {
            assert_eq!(decode(&encode(text)), text);
        }
        assert_eq!(decode("100%"), "100%");
    }
}
