//! Ends an answer before the first line that is indented less than the client wants.

/// Reads an answer piece by piece.
#[derive(Debug)]
pub(super) struct Indentation {
    /// Spaces and tabs; 0: all lines will do.
    least: usize,
    /// The beginning of a line that may still turn out to be too short. `None`: the line is part of
    /// the answer.
    begun: Option<String>,
    is_over: bool,
}

impl Indentation {
    pub(super) fn new(least: usize) -> Self {
        Self {
            least,
            // The first line goes on from the prompt.
            begun: None,
            is_over: false,
        }
    }

    /// Whether a line has ended the answer.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// What of the answer is certain, now that `text` follows.
    pub(super) fn push(&mut self, text: &str) -> String {
        if self.least == 0 {
            return text.to_owned();
        }
        let mut certain = String::new();
        for character in text.chars() {
            if self.is_over {
                break;
            }
            match &mut self.begun {
                Some(begun) if matches!(character, ' ' | '\t') => begun.push(character),
                Some(begun) => {
                    // An empty line says nothing of the next.
                    if character != '\n' && begun.chars().count() < self.least {
                        self.is_over = true;
                        break;
                    }
                    certain.push_str(begun);
                    certain.push(character);
                    self.begun = None;
                }
                None => certain.push(character),
            }
            if character == '\n' {
                self.begun = Some(String::new());
            }
        }
        certain
    }

    /// The rest of an answer that ends within a line's indentation.
    pub(super) fn finish(&mut self) -> String {
        if self.is_over {
            return String::new();
        }
        self.begun.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(least: usize, pieces: &[&str]) -> (String, bool) {
        let mut indentation = Indentation::new(least);
        let mut text: String = pieces.iter().map(|piece| indentation.push(piece)).collect();
        text += &indentation.finish();
        (text, indentation.is_over())
    }

    #[test]
    fn a_line_that_is_indented_less_ends_the_answer_at_every_split() {
        for (least, whole, expected) in [
            (0, "a\nb\n", ("a\nb\n", false)),
            (2, "a\n  b\n\n    c\nd\n  e", ("a\n  b\n\n    c\n", true)),
            (2, "a\n  b\n ", ("a\n  b\n ", false)),
            (1, "a\n\tb\n é", ("a\n\tb\n é", false)),
            (1, "a\né", ("a\n", true)),
            (4, "a", ("a", false)),
        ] {
            let expected = (expected.0.to_owned(), expected.1);
            assert_eq!(cut(least, &[whole]), expected, "{whole:?}");
            for (at, _) in whole.char_indices() {
                let (head, tail) = whole.split_at(at);
                assert_eq!(cut(least, &[head, tail]), expected, "{whole:?} at {at}");
            }
        }
    }
}
