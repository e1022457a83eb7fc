//! Finds the first of several strings in text that arrives in pieces, in constant time a byte.
//!
//! Each needle is a Knuth-Morris-Pratt automaton, so nothing already seen is looked at again and
//! the number of bytes that could still begin a needle is known after each piece.

/// Strings to look for and how much of each the end of the text so far matches.
#[derive(Debug, Clone)]
pub(crate) struct Needles(Vec<Needle>);

#[derive(Debug, Clone)]
struct Needle {
    bytes: Box<[u8]>,
    /// Length of the longest proper prefix that is also a suffix, for each prefix length minus one.
    fallback: Box<[usize]>,
    matched: usize,
}

/// A needle that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Index of the needle in the list given to [`Needles::new`].
    pub(crate) needle: usize,
    /// Bytes of the needle.
    pub(crate) len: usize,
    /// Where it ends in the piece given to [`Needles::find`].
    pub(crate) end: usize,
}

impl Needles {
    /// Empty strings never match.
    pub(crate) fn new<'a>(needles: impl IntoIterator<Item = &'a str>) -> Self {
        Self(needles.into_iter().map(Needle::new).collect())
    }

    /// The needle that is complete first; of several that end at the same byte, the longest. Text
    /// after it is not looked at and the search starts afresh.
    pub(crate) fn find(&mut self, piece: &str) -> Option<Hit> {
        for (index, &byte) in piece.as_bytes().iter().enumerate() {
            let mut hit: Option<Hit> = None;
            for (number, needle) in self.0.iter_mut().enumerate() {
                let len = needle.bytes.len();
                if needle.step(byte) && hit.is_none_or(|other| len > other.len) {
                    hit = Some(Hit {
                        needle: number,
                        len,
                        end: index + 1,
                    });
                }
            }
            if hit.is_some() {
                self.reset();
                return hit;
            }
        }
        None
    }

    /// Bytes at the end of the text so far that could still become a needle. Never splits a
    /// character, since a needle begins with a whole one.
    pub(crate) fn held(&self) -> usize {
        self.0
            .iter()
            .map(|needle| needle.matched)
            .max()
            .unwrap_or(0)
    }

    /// Forgets the text so far.
    pub(crate) fn reset(&mut self) {
        for needle in &mut self.0 {
            needle.matched = 0;
        }
    }
}

impl Needle {
    fn new(needle: &str) -> Self {
        let bytes: Box<[u8]> = needle.as_bytes().into();
        let mut fallback = vec![0; bytes.len()];
        let mut matched = 0;
        for index in 1..bytes.len() {
            while matched > 0 && bytes[index] != bytes[matched] {
                matched = fallback[matched - 1];
            }
            if bytes[index] == bytes[matched] {
                matched += 1;
            }
            fallback[index] = matched;
        }
        Self {
            bytes,
            fallback: fallback.into(),
            matched: 0,
        }
    }

    /// Takes one byte; whether the needle is complete with it.
    fn step(&mut self, byte: u8) -> bool {
        if self.bytes.is_empty() {
            return false;
        }
        while self.matched > 0 && self.bytes[self.matched] != byte {
            self.matched = self.fallback[self.matched - 1];
        }
        if self.bytes[self.matched] == byte {
            self.matched += 1;
        }
        let complete = self.matched == self.bytes.len();
        if complete {
            self.matched = self.fallback[self.matched - 1];
        }
        complete
    }
}

/// Needles with the text that could still become one.
#[derive(Debug, Clone)]
pub struct Scanner {
    needles: Needles,
    held: String,
}

/// Where a needle ends, as [`Scanner::scan`] tells it.
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Index in the list given to [`Scanner::new`].
    pub needle: usize,
    /// What follows it, not looked at.
    pub rest: &'a str,
}

impl Scanner {
    /// Empty strings never match.
    pub fn new<'a>(needles: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            needles: Needles::new(needles),
            held: String::new(),
        }
    }

    /// Takes the next text; appends to `free` what comes before a needle and cannot belong to one.
    pub fn scan<'a>(&mut self, text: &'a str, free: &mut String) -> Option<Found<'a>> {
        if let Some(hit) = self.needles.find(text) {
            self.held.push_str(&text[..hit.end]);
            self.held.truncate(self.held.len() - hit.len);
            free.push_str(&self.held);
            self.held.clear();
            return Some(Found {
                needle: hit.needle,
                rest: &text[hit.end..],
            });
        }
        let held = self.needles.held();
        if held <= text.len() {
            free.push_str(&self.held);
            self.held.clear();
            let (certain, rest) = text.split_at(text.len() - held);
            free.push_str(certain);
            self.held.push_str(rest);
        } else {
            self.held.push_str(text);
            free.extend(self.held.drain(..self.held.len() - held));
        }
        None
    }

    /// Bytes held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives out what is held back: no more text comes, or what comes is not joined to it.
    pub fn flush(&mut self) -> String {
        self.needles.reset();
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_the_longest_suffix_that_could_become_a_needle() {
        let mut needles = Needles::new(["aab", "xyz"]);
        assert_eq!(needles.find("aaa"), None);
        assert_eq!(needles.held(), 2);
        assert_eq!(needles.find("xy"), None);
        assert_eq!(needles.held(), 2);
        assert_eq!(needles.find("q"), None);
        assert_eq!(needles.held(), 0);
    }

    #[test]
    fn the_first_complete_needle_wins_and_the_longest_of_equals() {
        let mut needles = Needles::new(["b", "ab", "abcd"]);
        let hit = needles.find("xabcd").unwrap();
        assert_eq!((hit.needle, hit.len, hit.end), (1, 2, 3));
    }

    #[test]
    fn a_needle_may_span_pieces() {
        let mut needles = Needles::new(["a\u{e9}b"]);
        assert_eq!(needles.find("xa"), None);
        assert_eq!(needles.find("\u{e9}"), None);
        assert_eq!(needles.held(), 3);
        let hit = needles.find("bc").unwrap();
        assert_eq!((hit.len, hit.end), (4, 1));
    }
}
