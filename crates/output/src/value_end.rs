//! Finds where a value ends that is written with brackets and quotes, in text that comes in
//! pieces.

/// What may stand around text in which brackets mean nothing; longer ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    Json,
    Python,
    /// Gemma's tokens around strings, which know no escapes, and JSON's.
    Gemma,
}

impl Quotes {
    pub(super) fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["\""],
            Self::Python => &["'''", "\"\"\"", "'", "\""],
            Self::Gemma => &["<escape>", "<|\"|>", "\""],
        }
    }

    pub(super) fn escapes(mark: &str) -> bool {
        mark.starts_with(['\'', '"'])
    }
}

/// How far a value goes.
#[derive(Debug, Clone)]
pub(super) struct ValueEnd {
    quotes: Quotes,
    /// Markers that end the value outside quotes even where brackets are open.
    stops: Vec<&'static str>,
    depth: usize,
    quote: Option<&'static str>,
    is_escaped: bool,
}

/// What [`ValueEnd::scan`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scanned {
    /// Bytes that belong to the value.
    pub(super) len: usize,
    pub(super) end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It goes on, as far as one can see.
    Open,
    /// The value is complete: its last bracket is closed, or a separator or a foreign bracket
    /// follows.
    Whole,
    /// A marker follows though brackets are open.
    Broken,
}

impl ValueEnd {
    pub(super) fn new(quotes: Quotes, stops: Vec<&'static str>) -> Self {
        Self {
            quotes,
            stops,
            depth: 0,
            quote: None,
            is_escaped: false,
        }
    }

    /// Takes the text that follows what was taken so far.
    pub(super) fn scan(&mut self, text: &str, is_last: bool) -> Scanned {
        let mut at = 0;
        let found = |len, end| Scanned { len, end };
        while let Some(character) = text[at..].chars().next() {
            let rest = &text[at..];
            let next = at + character.len_utf8();
            if let Some(quote) = self.quote {
                if std::mem::take(&mut self.is_escaped) {
                    at = next;
                } else if character == '\\' && Quotes::escapes(quote) {
                    self.is_escaped = true;
                    at = next;
                } else if rest.starts_with(quote) {
                    self.quote = None;
                    at += quote.len();
                } else if !is_last && quote.starts_with(rest) {
                    break;
                } else {
                    at = next;
                }
                continue;
            }
            match super::scan::starts_with_any(rest, &self.stops, is_last) {
                Err(()) => break,
                Ok(Some(_)) => return found(at, End::Broken),
                Ok(None) => {}
            }
            match super::scan::starts_with_any(rest, self.quotes.marks(), is_last) {
                Err(()) => break,
                // `""` is an empty string, not the beginning of `"""`, but that takes a third.
                Ok(Some(mark)) => {
                    self.quote = Some(mark);
                    at += mark.len();
                    continue;
                }
                Ok(None) => {}
            }
            match character {
                '{' | '[' | '(' => self.depth += 1,
                '}' | ']' | ')' | ',' | ';' if self.depth == 0 => return found(at, End::Whole),
                '}' | ']' | ')' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return found(next, End::Whole);
                    }
                }
                _ => {}
            }
            at = next;
        }
        found(at, End::Open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value and how it ended, at every split.
    fn ends(quotes: Quotes, text: &str) -> (String, End) {
        let run = |pieces: &[&str]| {
            let mut end = ValueEnd::new(quotes, vec!["</c>"]);
            let (mut buffer, mut value) = (String::new(), String::new());
            for (index, piece) in pieces.iter().enumerate() {
                buffer.push_str(piece);
                let scanned = end.scan(&buffer, index + 1 == pieces.len());
                value.extend(buffer.drain(..scanned.len));
                if scanned.end != End::Open {
                    return (value, scanned.end);
                }
            }
            (value, End::Open)
        };
        let whole = run(&[text]);
        for (at, _) in text.char_indices() {
            assert_eq!(run(&[&text[..at], &text[at..]]), whole, "{text} at {at}");
        }
        whole
    }

    #[test]
    fn brackets_count_outside_quotes() {
        let whole = |text: &str| (text.to_owned(), End::Whole);
        assert_eq!(
            ends(Quotes::Json, "{\"a\": \"}\\\"\"}, x"),
            whole("{\"a\": \"}\\\"\"}")
        );
        assert_eq!(ends(Quotes::Json, "12, 13"), whole("12"));
        assert_eq!(ends(Quotes::Json, "\"a,b\"}"), whole("\"a,b\""));
        assert_eq!(
            ends(Quotes::Json, "{\"a\": \"</c>"),
            ("{\"a\": \"</c>".into(), End::Open)
        );
        assert_eq!(
            ends(Quotes::Json, "{\"a\": 1</c>"),
            ("{\"a\": 1".into(), End::Broken)
        );
        assert_eq!(ends(Quotes::Python, "'it\\'s (', 2"), whole("'it\\'s ('"));
        assert_eq!(ends(Quotes::Python, "'''a'b,''')"), whole("'''a'b,'''"));
        assert_eq!(ends(Quotes::Python, "'')"), whole("''"));
        assert_eq!(
            ends(Quotes::Python, "[(1, 2), {'a': 3}] "),
            whole("[(1, 2), {'a': 3}]")
        );
        assert_eq!(
            ends(Quotes::Gemma, "<|\"|>a\",}<|\"|>,b"),
            whole("<|\"|>a\",}<|\"|>")
        );
        assert_eq!(
            ends(Quotes::Gemma, "<escape>{<escape>}"),
            whole("<escape>{<escape>")
        );
    }
}
