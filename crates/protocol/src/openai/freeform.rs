//! Free text for custom tools, written by the model as the one string of a JSON object.
//!
//! Models call tools with JSON objects. A custom tool is offered as a function with the single
//! parameter `input`; here the string is taken out again while it is being written.

use serde_json::{Value, json};

/// The parameter that holds the text.
const FIELD: &str = "input";

/// Schema of the arguments object, for any text or for those that a regular expression matches as a
/// whole.
pub(super) fn parameters(regex: Option<&str>) -> Value {
    let mut text = json!({"type": "string"});
    if let Some(regex) = regex {
        text["pattern"] = format!("^(?:{regex})$").into();
    }
    json!({
        "type": "object",
        "properties": {FIELD: text},
        "required": [FIELD],
        "additionalProperties": false,
    })
}

/// Arguments that hold the text.
pub(super) fn arguments(input: &str) -> String {
    json!({FIELD: input}).to_string()
}

/// Reads arguments that come in pieces.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// All that came.
    raw: String,
    /// Bytes of `raw` that have been read as the string's.
    read: usize,
    state: State,
    text: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// The reader is before the string's first character.
    #[default]
    Before,
    Inside,
    /// The string has ended, or this is no object that begins with it.
    Over,
}

impl Reader {
    /// The text that became readable with this piece.
    pub(super) fn push(&mut self, piece: &str) -> String {
        self.raw.push_str(piece);
        if self.state == State::Before {
            match opening(&self.raw) {
                Opening::Whole(bytes) => {
                    self.read = bytes;
                    self.state = State::Inside;
                }
                Opening::Part => return String::new(),
                Opening::Other => self.state = State::Over,
            }
        }
        let mut text = String::new();
        while self.state == State::Inside {
            match character(&self.raw[self.read..]) {
                Character::Whole(character, bytes) => {
                    text.push(character);
                    self.read += bytes;
                }
                Character::Part => break,
                Character::End => self.state = State::Over,
            }
        }
        self.text.push_str(&text);
        text
    }

    /// Ends the reading: what is still missing from the text. Arguments of another form are text
    /// themselves, so that nothing the model wrote is lost.
    pub(super) fn finish(&mut self) -> String {
        if self.read > 0 {
            return String::new();
        }
        let rest = match macmlx_json::parse(self.raw.as_bytes()) {
            Ok(Value::String(text)) => text,
            Ok(Value::Object(mut fields)) => match fields.remove(FIELD) {
                Some(Value::String(text)) => text,
                _ => self.raw.clone(),
            },
            _ => self.raw.clone(),
        };
        self.text.push_str(&rest);
        rest
    }

    /// The text so far.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

enum Opening {
    /// `{"input":"`, and how many bytes it has here.
    Whole(usize),
    /// More of it may come.
    Part,
    Other,
}

fn opening(raw: &str) -> Opening {
    let mut rest = raw;
    for token in ["{", "\"input\"", ":", "\""] {
        rest = rest.trim_start_matches([' ', '\n', '\r', '\t']);
        match rest.strip_prefix(token) {
            Some(after) => rest = after,
            None if token.starts_with(rest) => return Opening::Part,
            None => return Opening::Other,
        }
    }
    Opening::Whole(raw.len() - rest.len())
}

enum Character {
    /// A character of the string, and how many bytes it takes in JSON.
    Whole(char, usize),
    /// The rest of an escape is to come.
    Part,
    End,
}

/// The next character of a JSON string's inside.
fn character(rest: &str) -> Character {
    let mut characters = rest.chars();
    match characters.next() {
        None => Character::Part,
        Some('"') => Character::End,
        Some('\\') => match characters.next() {
            None => Character::Part,
            Some('u') => unicode(rest),
            Some(escaped) => {
                let meant = match escaped {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    other => other,
                };
                Character::Whole(meant, 1 + escaped.len_utf8())
            }
        },
        Some(plain) => Character::Whole(plain, plain.len_utf8()),
    }
}

/// `\uXXXX`, or two of them for a character beyond the first plane.
fn unicode(rest: &str) -> Character {
    let unit = |at: usize| {
        let digits = rest.get(at + 2..at + 6)?;
        u16::from_str_radix(digits, 16).ok()
    };
    if rest.len() < 6 {
        return Character::Part;
    }
    let Some(first) = unit(0) else {
        return Character::Whole(char::REPLACEMENT_CHARACTER, 2);
    };
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Character::Whole(character, 6);
    }
    let lonely = Character::Whole(char::REPLACEMENT_CHARACTER, 6);
    let follows = &rest[6..];
    if follows.len() < 6 && ("\\u".starts_with(follows) || follows.starts_with("\\u")) {
        return Character::Part;
    }
    if !follows.starts_with("\\u") {
        return lonely;
    }
    let Some(second) = unit(6) else {
        return lonely;
    };
    match char::decode_utf16([first, second]).next() {
        Some(Ok(character)) => Character::Whole(character, 12),
        _ => lonely,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&str]) -> (String, String) {
        let mut reader = Reader::default();
        let mut deltas: String = pieces.iter().map(|piece| reader.push(piece)).collect();
        deltas.push_str(&reader.finish());
        (deltas, reader.into_text())
    }

    #[test]
    fn text_is_the_same_at_every_split() {
        let texts = [
            "",
            "*** Begin Patch\n+\"hi\"\\\n*** End Patch\n",
            "tab\t, \u{8}\u{c}\r, größer, \u{1f600}, {\"input\":\"x\"}",
        ];
        let spellings = texts.iter().flat_map(|text| {
            let units: Vec<String> = text
                .encode_utf16()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect();
            let escaped = units.concat();
            [
                (arguments(text), *text),
                (format!(" {{ \"input\" :\n\"{escaped}\" }}"), *text),
            ]
        });
        for (json, text) in spellings {
            let expected = (text.to_owned(), text.to_owned());
            assert_eq!(read(&[&json]), expected, "{json}");
            let characters: Vec<String> = json.chars().map(String::from).collect();
            let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
            assert_eq!(read(&characters), expected, "{json}");
            for (at, _) in json.char_indices() {
                let (left, right) = json.split_at(at);
                assert_eq!(read(&[left, right]), expected, "{json} at {at}");
            }
        }
    }

    #[test]
    fn text_is_read_while_it_is_written() {
        let mut reader = Reader::default();
        assert_eq!(reader.push("{\"input\": \"ab\\"), "ab");
        assert_eq!(reader.push("nc"), "\nc");
        // Cut off here: what came is the text.
        assert_eq!(reader.finish(), "");
        assert_eq!(reader.into_text(), "ab\nc");
    }

    #[test]
    fn other_forms_are_not_lost() {
        for (arguments, text) in [
            ("{\"why\": 1, \"input\": \"a\"}", "a"),
            ("\"plain\"", "plain"),
            ("{\"patch\": \"a\"}", "{\"patch\": \"a\"}"),
            ("{\"input\": 5}", "{\"input\": 5}"),
            ("*** Begin", "*** Begin"),
            ("{\"inp", "{\"inp"),
            ("", ""),
        ] {
            let characters: Vec<String> = arguments.chars().map(String::from).collect();
            let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
            for pieces in [&[arguments][..], &characters] {
                assert_eq!(
                    read(pieces),
                    (text.to_owned(), text.to_owned()),
                    "{arguments}"
                );
            }
        }
    }

    #[test]
    fn broken_escapes_are_not_fatal() {
        for (inside, text) in [
            ("\\ud83d", "\u{fffd}"),
            ("\\ud83dx", "\u{fffd}x"),
            ("\\ud83d\\u0041", "\u{fffd}A"),
            ("\\uzzzz", "\u{fffd}zzzz"),
            ("\\u00€€", "\u{fffd}00€€"),
        ] {
            let json = format!("{{\"input\":\"{inside}\"}}");
            assert_eq!(read(&[&json]).1, text, "{inside}");
        }
    }
}
