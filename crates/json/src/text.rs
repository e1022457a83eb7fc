//! The text of a JSON document, with what is no Unicode in it replaced.
//!
//! JavaScript and Java hold strings as UTF-16 and cut them anywhere, so half of a surrogate pair is
//! written as the escape `\ud83d`; other programs cut bytes. Both stay in a conversation for good,
//! so each is read as U+FFFD, as other readers do. A document that is valid never changes.
//! Files hold comments, commas at the end and Python's numbers besides; requests do not.

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

/// Reads a file that people edit. Comments (`//` and `/* */`) and one comma after the last item, which
/// the editors of such files take, are skipped.
///
/// # Errors
///
/// The document is no JSON, also without them.
pub fn parse_edited(document: &[u8]) -> Result<Value, serde_json::Error> {
    parse_rewritten(document, Words::Json)
}

/// Whether a file holds what [`parse_edited`] skips, and would lose it if it was written anew.
pub fn has_comments(document: &[u8]) -> bool {
    let (_, found) = rewrite(document, Words::Json);
    found.comments
}

/// Reads a file of a model's folder, which Python writes and people edit. Its numbers may be `NaN`,
/// `Infinity` and `-Infinity`. JSON has none of them: the first is read as null, the others as numbers
/// that are too large for any format of weights. Whole numbers written with a fraction of zero become
/// integers.
///
/// # Errors
///
/// The document is no JSON, also without such numbers, comments and commas at the end.
pub fn parse_python(document: &[u8]) -> Result<Value, serde_json::Error> {
    let mut value = parse_message(document)?;
    make_integers(&mut value);
    Ok(value)
}

/// Reads a message of another program, which may be written in Python. Numbers are read as in
/// [`parse_python`], but whole ones stay as they are.
///
/// # Errors
///
/// The document is no JSON, also without such numbers, comments and commas at the end.
pub fn parse_message(document: &[u8]) -> Result<Value, serde_json::Error> {
    parse_rewritten(document, Words::Python)
}

fn parse_rewritten(document: &[u8], words: Words) -> Result<Value, serde_json::Error> {
    parse(document).or_else(|error| {
        let (rewritten, found) = rewrite(document, words);
        if found == Found::default() {
            return Err(error);
        }
        parse(&rewritten)
    })
}

/// Makes integers of the whole numbers that floats hold exactly, at any depth.
pub fn make_integers(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(items) => items.iter_mut().for_each(make_integers),
        Value::Object(fields) => fields.values_mut().for_each(make_integers),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or(f64::NAN);
            if float.fract() == 0.0 && float.abs() <= EXACT {
                *number = (float as i64).into();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a document calls its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Json,
    Python,
}

/// What was rewritten in a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Found {
    comments: bool,
    commas: bool,
    numbers: bool,
}

/// The document with spaces for comments and commas at the end, so that errors name the right line,
/// and with what JSON has in place of Python's numbers.
fn rewrite(document: &[u8], words: Words) -> (Vec<u8>, Found) {
    const NUMBERS: [(&[u8], &[u8]); 2] = [(b"NaN", b"null"), (b"Infinity", b"1e308")];
    let mut written = Vec::with_capacity(document.len());
    let mut found = Found::default();
    let mut rest = document;
    while let Some(&byte) = rest.first() {
        let mut taken = 1;
        match byte {
            b'"' => {
                taken = text_len(rest);
                written.extend_from_slice(&rest[..taken]);
            }
            b'/' => {
                if let Some(length) = comment_len(rest) {
                    taken = length;
                    found.comments = true;
                    let blank = |byte: &u8| if *byte == b'\n' { b'\n' } else { b' ' };
                    written.extend(rest[..taken].iter().map(blank));
                } else {
                    // Nothing after it means anything.
                    taken = rest.len();
                    written.extend_from_slice(rest);
                }
            }
            b']' | b'}' => {
                found.commas |= blank_last_comma(&mut written);
                written.push(byte);
            }
            _ => {
                let mut numbers = NUMBERS.iter().filter(|_| words == Words::Python);
                if let Some((python, json)) = numbers.find(|(python, _)| rest.starts_with(python)) {
                    taken = python.len();
                    found.numbers = true;
                    written.extend_from_slice(json);
                } else {
                    written.push(byte);
                }
            }
        }
        rest = &rest[taken..];
    }
    (written, found)
}

/// Bytes of the text that `rest` begins with, quotes included; all of them if it never ends.
fn text_len(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            // The byte after a backslash ends no text.
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Bytes of the comment that `rest` begins with. `None`: there is none, or it never ends.
fn comment_len(rest: &[u8]) -> Option<usize> {
    match rest.get(1)? {
        b'/' => {
            let end = rest.iter().position(|byte| *byte == b'\n');
            Some(end.unwrap_or(rest.len()))
        }
        b'*' => {
            let inside = rest[2..].windows(2).position(|bytes| bytes == b"*/")?;
            Some(inside + 4)
        }
        _ => None,
    }
}

/// Puts a space for the comma that comes last in what was written and has an item before it.
fn blank_last_comma(written: &mut [u8]) -> bool {
    let last = |bytes: &[u8]| bytes.iter().rposition(|byte| !byte.is_ascii_whitespace());
    let Some(comma) = last(written).filter(|at| written[*at] == b',') else {
        return false;
    };
    let before = last(&written[..comma]).map(|at| written[at]);
    if matches!(before, None | Some(b'[' | b'{' | b',')) {
        return false;
    }
    written[comma] = b' ';
    true
}

/// The document with U+FFFD for each unpaired surrogate escape and each sequence of bytes that is
/// no UTF-8. `None`: there are none.
fn mend(document: &[u8]) -> Option<String> {
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
                "limit": [0, 1e308], "eps": null, "low": -1e308,
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
    fn files_that_people_edit_hold_comments_and_a_last_comma() {
        for (document, value) in [
            ("{\"a\": 1,}", json!({"a": 1})),
            ("[1, [2, ], ]", json!([1, [2]])),
            (
                "// first\n{\"a\": /* two\nlines */ 1} // end",
                json!({"a": 1}),
            ),
            ("{\"a\": 1, // one\n}", json!({"a": 1})),
            (
                "{\"a\": \"// ,] /* */\", \"b\": \"\\\"//\",}",
                json!({"a": "// ,] /* */", "b": "\"//"}),
            ),
            ("\u{feff}{\"a\": \"\\ud83d\",}", json!({"a": "\u{fffd}"})),
            ("/**/[]", json!([])),
            ("{}", json!({})),
        ] {
            for parse in [parse_edited, parse_python] {
                assert_eq!(parse(document.as_bytes()).unwrap(), value, "{document}");
            }
        }
        for document in [
            "[,]",
            "{,}",
            "[1,,]",
            ",",
            "[1 /* ]",
            "/",
            "{\"a\": 1,",
            "[1,]]",
            "{\"a\",}",
            "# x\n{}",
        ] {
            for parse in [parse_edited, parse_python] {
                assert!(parse(document.as_bytes()).is_err(), "{document}");
            }
        }
        let error = parse_edited(b"{ // one\n  \"a\": 1,\n  \"b\": x,\n}").unwrap_err();
        assert_eq!((error.line(), error.column()), (3, 8));
        assert!(has_comments(b"{} // x") && !has_comments(b"{\"a\": \"//\",}"));
    }

    #[test]
    fn whole_numbers_of_models_files_are_integers() {
        let document = b"{\"a\": [768.0, 1e3, 0.5, -0.0], \"b\": {\"c\": 1e30}}";
        assert_eq!(
            parse_python(document).unwrap(),
            json!({"a": [768, 1000, 0.5, 0], "b": {"c": 1e30}})
        );
    }

    #[test]
    fn messages_keep_their_numbers_as_they_are() {
        let odd = b"\xef\xbb\xbf{\"a\": [NaN, 2.0], \"b\": \"\\ud83d\xff\"}";
        assert_eq!(
            parse_message(odd).unwrap(),
            json!({"a": [null, 2.0], "b": "\u{fffd}\u{fffd}"})
        );
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
