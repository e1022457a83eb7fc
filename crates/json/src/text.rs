//! The text of a JSON document, with what is no Unicode in it replaced.
//!
//! JavaScript and Java hold strings as UTF-16 and cut them anywhere, so half of a surrogate pair is
//! written as the escape `\ud83d`; other programs cut bytes. Both stay in a conversation for good,
//! so each is read as U+FFFD, as other readers do. A document that is valid never changes.

use serde_json::Value;

/// What Windows programs write before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// U+FFFD, as an escape that is as long as the one it stands in for.
const REPLACEMENT: &[u8] = br"\ufffd";

/// Bytes of an escape such as `\ud83d`.
const ESCAPE_LENGTH: usize = 6;

/// Reads a document.
///
/// # Errors
///
/// The document is no JSON, also with its text mended.
pub fn parse(document: &[u8]) -> Result<Value, serde_json::Error> {
    let document = document.strip_prefix(BYTE_ORDER_MARK).unwrap_or(document);
    serde_json::from_slice(document).or_else(|error| match mend(document) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// Reads a file that Python may have written, whose numbers may be `NaN`, `Infinity` and
/// `-Infinity`. JSON has none of them: the first is read as null, the others as numbers that are too
/// large for any format of weights.
///
/// # Errors
///
/// The document is no JSON, also without such numbers.
pub fn parse_python(document: &[u8]) -> Result<Value, serde_json::Error> {
    parse(document).or_else(|error| match replace_python_numbers(document) {
        Some(replaced) => parse(&replaced),
        None => Err(error),
    })
}

/// The document with what JSON has in place of Python's numbers. `None`: there are none.
fn replace_python_numbers(document: &[u8]) -> Option<Vec<u8>> {
    const NUMBERS: [(&[u8], &[u8]); 2] = [(b"NaN", b"null"), (b"Infinity", b"1e308")];
    let mut replaced = Vec::with_capacity(document.len());
    let mut rest = document;
    let mut is_in_text = false;
    let mut is_changed = false;
    while let Some((&byte, after)) = rest.split_first() {
        let number = NUMBERS
            .iter()
            .find(|(written, _)| rest.starts_with(written));
        match (byte, number) {
            // The byte after a backslash ends no text.
            (b'\\', _) if is_in_text => {
                let taken = rest.len().min(2);
                replaced.extend_from_slice(&rest[..taken]);
                rest = &rest[taken..];
                continue;
            }
            (b'"', _) => is_in_text = !is_in_text,
            (_, Some((written, json))) if !is_in_text => {
                replaced.extend_from_slice(json);
                rest = &rest[written.len()..];
                is_changed = true;
                continue;
            }
            _ => {}
        }
        replaced.push(byte);
        rest = after;
    }
    is_changed.then_some(replaced)
}

/// The document with U+FFFD for each unpaired surrogate escape and each sequence of bytes that is
/// no UTF-8. `None`: there are none.
pub fn mend(document: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(document);
    let mut bytes = text.as_bytes().to_vec();
    let mut is_changed = text.as_bytes() != document;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match read_escape(&bytes, at) {
            Some(0xD800..=0xDBFF)
                if matches!(
                    read_escape(&bytes, at + ESCAPE_LENGTH),
                    Some(0xDC00..=0xDFFF)
                ) =>
            {
                at += 2 * ESCAPE_LENGTH;
            }
            Some(0xD800..=0xDFFF) => {
                bytes[at..at + ESCAPE_LENGTH].copy_from_slice(REPLACEMENT);
                is_changed = true;
                at += ESCAPE_LENGTH;
            }
            // Another escape: the byte after the backslash is no backslash of its own.
            _ => at += 2,
        }
    }
    // One escape took the place of another, so it is still UTF-8.
    is_changed.then(|| String::from_utf8(bytes).ok()).flatten()
}

/// The UTF-16 code unit of an escape that begins at `at`.
fn read_escape(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + ESCAPE_LENGTH)?;
    let digits = escape.strip_prefix(br"\u")?;
    digits.iter().try_fold(0, |unit: u16, digit| {
        Some(unit << 4 | u16::try_from(char::from(*digit).to_digit(16)?).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unpaired_surrogates_are_replaced_and_pairs_are_not() {
        for (document, text) in [
            (r#""cut \ud83d""#, "cut \u{fffd}"),
            (r#""\uD83D end""#, "\u{fffd} end"),
            (r#""\ude00""#, "\u{fffd}"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ud83d\n""#, "\u{fffd}\n"),
            (r#""\ud83d\\ude00""#, "\u{fffd}\\ude00"),
            (r#""\\ud83d \ud83d""#, "\\ud83d \u{fffd}"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\ud83d\ude00 \ude00""#, "😀 \u{fffd}"),
        ] {
            assert_eq!(parse(document.as_bytes()).unwrap(), text, "{document}");
        }
        assert_eq!(
            parse(br#"{"a\ud83d": {"\udc00": ["\ud83d"]}}"#).unwrap(),
            json!({"a\u{fffd}": {"\u{fffd}": ["\u{fffd}"]}})
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        for (document, text) in [
            (&b"\"\xff\""[..], "\u{fffd}"),
            (b"\"a\xe2\x82\"", "a\u{fffd}"),
            (b"\"\xf0\x9f\x98 b\"", "\u{fffd} b"),
            (b"\"\x80 \\ud83d\"", "\u{fffd} \u{fffd}"),
        ] {
            assert_eq!(parse(document).unwrap(), text, "{document:?}");
        }
        assert_eq!(parse(b"{\"\xff\": 1}").unwrap(), json!({"\u{fffd}": 1}));
    }

    #[test]
    fn files_hold_the_numbers_that_python_writes() {
        let document = br#"{"limit": [0.0, Infinity], "eps": NaN, "low": -Infinity,
            "NaN": "Infinity \" NaN", "path": "C:\\"}"#;
        let read = parse_python(document).unwrap();
        assert_eq!(
            read,
            json!({
                "limit": [0.0, 1e308], "eps": null, "low": -1e308,
                "NaN": "Infinity \" NaN", "path": "C:\\",
            })
        );
        assert!((read["limit"][1].as_f64().unwrap() as f32).is_infinite());
        assert_eq!(parse_python(b"[1, true]").unwrap(), json!([1, true]));
        // Requests hold none of them, nor do words that only begin like them.
        assert!(parse(document).is_err());
        for broken in [
            &b"{\"a\": NaNa}"[..],
            b"[Infinity",
            b"\"NaN",
            b"[-NaN]",
            b"\"a\\",
        ] {
            assert!(parse_python(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(
            parse("\u{feff}{\"a\": 1}".as_bytes()).unwrap(),
            json!({"a": 1})
        );
        assert_eq!(
            parse("\u{feff} \"\\ud83d\"".as_bytes()).unwrap(),
            "\u{fffd}"
        );
        // Within a text it is a character.
        assert_eq!(parse("\"\u{feff}\"".as_bytes()).unwrap(), "\u{feff}");
    }

    #[test]
    fn what_is_no_json_stays_an_error() {
        for document in [
            &b"NaN"[..],
            b"{\"a\": NaN, \"b\": \"\\ud83d\"}",
            b"{\"a\": 1,}",
            b"\"\\ud83\"",
            b"\"\\ud83d",
            b"\xff{}",
            b"\xff\xfe{\0}\0",
            b"",
            b"\xef\xbb\xbf",
            b"\"\x01\"",
            b"1e999",
        ] {
            assert!(parse(document).is_err(), "{document:?}");
        }
    }

    #[test]
    fn valid_documents_do_not_change() {
        for document in [
            r#""\ud83d\ude00 \\ud83d \u0000 \" é 😀""#,
            r#"{"a": [1.0, 1e2, -0.0, "\\"]}"#,
        ] {
            assert_eq!(mend(document.as_bytes()), None, "{document}");
            let strict: Value = serde_json::from_str(document).unwrap();
            assert_eq!(parse(document.as_bytes()).unwrap(), strict);
        }
    }
}
