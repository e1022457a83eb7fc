//! Stop sequences on text, wherever the borders between tokens fall.

use macmlx_output::Scanner;

/// Watches text for stop sequences and gives out what can no longer be part of one.
///
/// The sequence that is complete first wins; of several that end at the same character, the
/// longest. Only the longest suffix that could still become a stop sequence is held back.
#[derive(Debug, Clone)]
pub(crate) struct StopMatcher {
    sequences: Vec<String>,
    scanner: Scanner,
}

impl StopMatcher {
    /// Empty sequences never match.
    pub(crate) fn new(sequences: Vec<String>) -> Self {
        let scanner = Scanner::new(sequences.iter().map(String::as_str));
        Self { sequences, scanner }
    }

    /// Takes the next text. Appends to `out` what comes before a stop sequence and cannot belong
    /// to one; returns the sequence that matched, which is not part of the output. After a match
    /// nothing more may be pushed.
    pub(crate) fn push(&mut self, text: &str, out: &mut String) -> Option<&str> {
        let found = self.scanner.scan(text, out)?;
        Some(&self.sequences[found.needle])
    }

    /// Bytes held back.
    pub(crate) fn held(&self) -> usize {
        self.scanner.held()
    }

    /// Gives out what is held back: no more text comes, or what comes is not joined to it.
    pub(crate) fn flush(&mut self) -> String {
        self.scanner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joined output and the match, with the text cut at `splits`.
    fn run(stops: &[&str], pieces: &[&str]) -> (String, Option<String>) {
        let mut matcher = StopMatcher::new(stops.iter().map(ToString::to_string).collect());
        let mut out = String::new();
        for piece in pieces {
            if let Some(found) = matcher.push(piece, &mut out) {
                return (out, Some(found.to_owned()));
            }
        }
        out.push_str(&matcher.flush());
        (out, None)
    }

    /// What the definition says, looking at every prefix.
    fn reference(stops: &[&str], text: &str) -> (String, Option<String>) {
        for end in 0..=text.len() {
            if !text.is_char_boundary(end) {
                continue;
            }
            let ending = stops
                .iter()
                .filter(|stop| !stop.is_empty() && text[..end].ends_with(**stop))
                .max_by_key(|stop| stop.len());
            if let Some(stop) = ending {
                return (text[..end - stop.len()].into(), Some((*stop).into()));
            }
        }
        (text.into(), None)
    }

    /// All strings of up to `len` characters from `alphabet`.
    fn strings(alphabet: &[char], len: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut longest = all.clone();
        for _ in 0..len {
            longest = longest
                .iter()
                .flat_map(|text| alphabet.iter().map(move |c| format!("{text}{c}")))
                .collect();
            all.extend(longest.iter().cloned());
        }
        all
    }

    #[test]
    fn every_short_text_at_every_split_does_what_the_definition_says() {
        let sets: &[&[&str]] = &[
            &["ab"],
            &["aab", "ba"],
            &["aa", "aaa"],
            &["b", "ab", "é"],
            &["éa", "aé"],
            &["abab", "bb", ""],
        ];
        for stops in sets {
            for text in strings(&['a', 'b', 'é'], 6) {
                let expected = reference(stops, &text);
                assert_eq!(run(stops, &[&text]), expected, "{stops:?} {text:?}");
                let chars: Vec<String> = text.chars().map(String::from).collect();
                let singles: Vec<&str> = chars.iter().map(String::as_str).collect();
                assert_eq!(run(stops, &singles), expected, "{stops:?} {text:?} by char");
                for (at, _) in text.char_indices() {
                    let (head, tail) = text.split_at(at);
                    assert_eq!(
                        run(stops, &[head, tail]),
                        expected,
                        "{stops:?} {text:?} {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn holds_back_no_more_than_could_become_a_stop() {
        let mut matcher = StopMatcher::new(vec!["\nUser:".into(), "###".into()]);
        let mut out = String::new();
        matcher.push("Hello\nUs", &mut out);
        assert_eq!((out.as_str(), matcher.held()), ("Hello", 3));
        matcher.push("ual", &mut out);
        assert_eq!((out.as_str(), matcher.held()), ("Hello\nUsual", 0));
        matcher.push(" ##", &mut out);
        assert_eq!(matcher.flush(), "##");
        assert_eq!(out, "Hello\nUsual ");
    }
}
