//! Values as Python or Gemma writes them, turned into JSON.

use super::{argument::quote, value_end::Quotes};

/// Brackets deeper than this are not read.
const DEPTH_LIMIT: usize = 64;

/// The JSON of a literal; `None` when it is none, or more than one.
pub(super) fn to_json(text: &str, quotes: Quotes) -> Option<String> {
    let mut literal = Literal {
        rest: text,
        quotes,
        out: String::new(),
    };
    literal.value(DEPTH_LIMIT)?;
    literal.rest.trim().is_empty().then_some(literal.out)
}

/// The string that a text begins with, and how long it is with its marks.
pub(super) fn leading_string(text: &str, quotes: Quotes) -> Option<(String, usize)> {
    let mut literal = Literal {
        rest: text,
        quotes,
        out: String::new(),
    };
    let string = literal.string()?;
    Some((string, text.len() - literal.rest.len()))
}

struct Literal<'a> {
    rest: &'a str,
    quotes: Quotes,
    out: String,
}

impl Literal<'_> {
    fn value(&mut self, depth: usize) -> Option<()> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            _ if depth == 0 => None,
            '[' => self.list(']', depth),
            '(' => self.list(')', depth),
            '{' => self.object(depth),
            _ => match self.string() {
                Some(text) => {
                    self.out.push_str(&quote(&text));
                    Some(())
                }
                None => self.word(),
            },
        }
    }

    fn list(&mut self, close: char, depth: usize) -> Option<()> {
        self.take_char();
        self.out.push('[');
        let mut is_first = true;
        while !self.takes(close) {
            if !is_first {
                self.out.push_str(", ");
            }
            is_first = false;
            self.value(depth - 1)?;
            if !self.takes(',') && !self.peeks(close) {
                return None;
            }
        }
        self.out.push(']');
        Some(())
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.take_char();
        self.out.push('{');
        let mut is_first = true;
        while !self.takes('}') {
            if !is_first {
                self.out.push_str(", ");
            }
            is_first = false;
            let key = self.key()?;
            self.out.push_str(&quote(&key));
            self.out.push_str(": ");
            self.value(depth - 1)?;
            if !self.takes(',') && !self.peeks('}') {
                return None;
            }
        }
        self.out.push('}');
        Some(())
    }

    /// A string, or in Gemma's notation a bare word, with the colon after it.
    fn key(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        let Some(key) = self.string() else {
            let (word, rest) = self.rest.split_once(':')?;
            let word = word.trim();
            let is_bare = self.quotes == Quotes::Gemma
                && !word.is_empty()
                && !word.contains(|c: char| c.is_whitespace() || "{}[],".contains(c));
            // An integer may be the key of a dictionary.
            if !is_bare && word.parse::<i64>().is_err() {
                return None;
            }
            self.rest = rest;
            return Some(word.into());
        };
        self.takes(':').then_some(key)
    }

    fn string(&mut self) -> Option<String> {
        let mark = self
            .quotes
            .marks()
            .iter()
            .find(|mark| self.rest.starts_with(**mark))?;
        let body = &self.rest[mark.len()..];
        if !Quotes::escapes(mark) {
            let (text, rest) = body.split_once(mark)?;
            self.rest = rest;
            return Some(text.into());
        }
        let mut text = String::new();
        let mut characters = body.char_indices();
        while let Some((at, character)) = characters.next() {
            if body[at..].starts_with(mark) {
                self.rest = &body[at + mark.len()..];
                return Some(text);
            }
            if character == '\\' {
                escape(&mut characters, &mut text)?;
            } else {
                text.push(character);
            }
        }
        None
    }

    /// A number or a constant; in Gemma's notation also a string without quotes.
    fn word(&mut self) -> Option<()> {
        let end = self
            .rest
            .find(|c: char| ",]})".contains(c))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let word = word.trim_end();
        self.rest = rest;
        let json = match word {
            "True" | "true" => "true".into(),
            "False" | "false" => "false".into(),
            "None" | "null" => "null".into(),
            _ => number(word).or_else(|| {
                (self.quotes == Quotes::Gemma && !word.is_empty()).then(|| quote(word))
            })?,
        };
        self.out.push_str(&json);
        Some(())
    }

    fn take_char(&mut self) {
        let mut characters = self.rest.chars();
        characters.next();
        self.rest = characters.as_str();
    }

    fn peeks(&mut self, character: char) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(character)
    }

    fn takes(&mut self, character: char) -> bool {
        let found = self.peeks(character);
        if found {
            self.take_char();
        }
        found
    }
}

/// What follows a backslash, as Python and JSON have it.
fn escape(characters: &mut std::str::CharIndices<'_>, text: &mut String) -> Option<()> {
    let (_, character) = characters.next()?;
    match character {
        'n' => text.push('\n'),
        't' => text.push('\t'),
        'r' => text.push('\r'),
        'b' => text.push('\u{8}'),
        'f' => text.push('\u{C}'),
        '0' => text.push('\0'),
        '\n' => {}
        '\\' | '\'' | '"' | '/' => text.push(character),
        'x' => text.push(code_point(characters, 2)?),
        'U' => text.push(code_point(characters, 8)?),
        'u' => {
            let mut ahead = characters.clone();
            let first = hex(&mut ahead, 4)?;
            // JSON writes characters beyond the first plane as two surrogates.
            let code = if (0xD800..0xDC00).contains(&first) {
                let is_pair = ahead.next()?.1 == '\\' && ahead.next()?.1 == 'u';
                let second = hex(&mut ahead, 4)?;
                if !is_pair || !(0xDC00..0xE000).contains(&second) {
                    return None;
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            } else {
                first
            };
            *characters = ahead;
            text.push(char::from_u32(code)?);
        }
        // Python leaves an escape it does not know as it stands.
        other => text.extend(['\\', other]),
    }
    Some(())
}

fn code_point(characters: &mut std::str::CharIndices<'_>, digits: usize) -> Option<char> {
    char::from_u32(hex(characters, digits)?)
}

fn hex(characters: &mut std::str::CharIndices<'_>, digits: usize) -> Option<u32> {
    (0..digits).try_fold(0, |code, _| {
        let digit = characters.next()?.1.to_digit(16)?;
        Some(code * 16 + digit)
    })
}

/// A number in JSON's notation, from Python's.
fn number(word: &str) -> Option<String> {
    let plain = word.replace('_', "");
    if serde_json::from_str::<serde_json::Number>(&plain).is_ok() {
        return Some(plain);
    }
    let unsigned = plain.trim_start_matches(['+', '-']);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let value: f64 = plain.parse().ok()?;
    serde_json::Number::from_f64(value).map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python() {
        let cases = [
            ("1", "1"),
            ("-1.50", "-1.50"),
            ("1_000", "1000"),
            (".5", "0.5"),
            ("+3", "3.0"),
            ("True", "true"),
            ("None", "null"),
            ("'it\\'s'", "\"it's\""),
            ("\"a\\n\\u00e9\\x41\\U0001F44B\\d\"", "\"a\\néA👋\\\\d\""),
            ("\"\\ud83d\\udc4b\"", "\"👋\""),
            ("'''a'b\n'''", "\"a'b\\n\""),
            ("['a', (1, 2,), []]", "[\"a\", [1, 2], []]"),
            (
                "{'k': {\"n\": None}, 2: 'x'}",
                "{\"k\": {\"n\": null}, \"2\": \"x\"}",
            ),
        ];
        for (text, json) in cases {
            assert_eq!(
                to_json(text, Quotes::Python).as_deref(),
                Some(json),
                "{text}"
            );
        }
        for text in [
            "foo",
            "'open",
            "[1 2]",
            "{a: 1}",
            "1 2",
            "",
            "nan",
            "\"\\ud83d\"",
            "f(x)",
        ] {
            assert_eq!(to_json(text, Quotes::Python), None, "{text}");
        }
        assert_eq!(to_json(&"[".repeat(100_000), Quotes::Python), None);
    }

    #[test]
    fn gemma() {
        let cases = [
            ("<escape>a \"b\"\\<escape>", "\"a \\\"b\\\"\\\\\""),
            ("<|\"|>x, y<|\"|>", "\"x, y\""),
            (
                "{a:<|\"|>x<|\"|>,<|\"|>b c<|\"|>:[1,true]}",
                "{\"a\": \"x\", \"b c\": [1, true]}",
            ),
            ("north west", "\"north west\""),
            ("null", "null"),
        ];
        for (text, json) in cases {
            assert_eq!(
                to_json(text, Quotes::Gemma).as_deref(),
                Some(json),
                "{text}"
            );
        }
    }
}
