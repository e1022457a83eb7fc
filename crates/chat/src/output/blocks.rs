//! The blocks the parser can be inside of, each with the markers it looks for.

use super::formats::{Close, Format};
use crate::needles::Scanner;

/// Looks for a block's closing marker and for the opening ones of its format.
#[derive(Debug)]
struct Markers {
    /// The closing one first, if there is one.
    texts: Vec<&'static str>,
    has_close: bool,
    scanner: Scanner,
}

/// A marker that was found inside a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) text: &'static str,
    pub(super) closes: bool,
}

impl Markers {
    fn new(format: &dyn Format) -> Self {
        let close = match format.close() {
            Close::Marker(marker) => Some(marker),
            Close::End => None,
        };
        let texts: Vec<&'static str> = close
            .into_iter()
            .chain(format.open().iter().copied())
            .collect();
        Self {
            scanner: Scanner::new(texts.iter().copied()),
            texts,
            has_close: close.is_some(),
        }
    }

    /// Appends what is certain to `free`; the marker that ends it and what follows, if one was
    /// found.
    fn scan<'a>(&mut self, text: &'a str, free: &mut String) -> Option<(Marker, &'a str)> {
        let found = self.scanner.scan(text, free)?;
        let marker = Marker {
            text: self.texts[found.needle],
            closes: self.has_close && found.needle == 0,
        };
        Some((marker, found.rest))
    }
}

/// Reasoning, given out as it comes, without the white space at its ends.
#[derive(Debug)]
pub(super) struct ReasoningBlock {
    markers: Markers,
    /// White space that is output only if more reasoning follows.
    spaces: String,
    started: bool,
}

/// What became of text inside a reasoning block.
#[derive(Debug)]
pub(super) struct Reasoned<'a> {
    pub(super) text: String,
    pub(super) raw_len: usize,
    pub(super) is_closed: bool,
    /// What was not looked at.
    pub(super) rest: &'a str,
}

impl ReasoningBlock {
    pub(super) fn new(format: &dyn Format) -> Self {
        Self {
            markers: Markers::new(format),
            spaces: String::new(),
            started: false,
        }
    }

    pub(super) fn feed<'a>(&mut self, text: &'a str) -> Reasoned<'a> {
        let mut free = String::new();
        let found = self.markers.scan(text, &mut free);
        let visible = if self.started {
            free.as_str()
        } else {
            free.trim_start()
        };
        self.started |= !visible.is_empty();
        let body = visible.trim_end();
        let mut out = Reasoned {
            text: String::new(),
            raw_len: free.len() - visible.len(),
            is_closed: false,
            rest: "",
        };
        if !body.is_empty() {
            out.text = std::mem::take(&mut self.spaces) + body;
            out.raw_len += out.text.len();
        }
        self.spaces.push_str(&visible[body.len()..]);

        if let Some((marker, rest)) = found {
            let spaces = std::mem::take(&mut self.spaces);
            out.raw_len += spaces.len() + marker.text.len();
            out.is_closed = marker.closes;
            out.rest = rest;
            // An opening marker is the prompt's once more, or later on a word of the model's.
            if !marker.closes && self.started {
                out.text.push_str(&spaces);
                out.text.push_str(marker.text);
            }
        }
        out
    }

    /// The block ends without its marker: what is held back is reasoning.
    pub(super) fn finish(mut self) -> String {
        self.spaces + &self.markers.scanner.flush()
    }
}

/// Tool calls, read when the block ends.
#[derive(Debug)]
pub(super) struct CallBlock {
    pub(super) format: &'static dyn Format,
    markers: Markers,
    /// The marker that began the block, empty when the body has none.
    pub(super) open: &'static str,
    pub(super) body: String,
}

impl CallBlock {
    pub(super) fn new(format: &'static dyn Format, open: &'static str) -> Self {
        Self {
            format,
            markers: Markers::new(format),
            open,
            body: String::new(),
        }
    }

    /// Takes text into the body; the marker that may end it and what follows, if one was found.
    pub(super) fn feed<'a>(&mut self, text: &'a str) -> Option<(Marker, &'a str)> {
        self.markers.scan(text, &mut self.body)
    }

    /// The block ends without its marker: what is held back belongs to the body.
    pub(super) fn finish(&mut self) {
        self.body.push_str(&self.markers.scanner.flush());
    }
}
