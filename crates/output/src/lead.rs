//! The text an output begins with, or that follows a block, until it is clear what it is.

/// Holds back white space, and what could become a call without an opening marker.
#[derive(Debug)]
pub(super) struct Lead {
    text: String,
    /// `text` without white space.
    dense: String,
    /// White space is the model's text, not a separator after a block.
    keep_space: bool,
    /// How a call begins that has no marker; empty where none can begin.
    starts: Vec<String>,
}

/// What the text turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The text so far does not decide it.
    Open,
    Text,
    /// A call without an opening marker.
    Call,
}

impl Lead {
    pub(super) fn new(keep_space: bool, starts: Vec<String>) -> Self {
        Self {
            text: String::new(),
            dense: String::new(),
            keep_space,
            starts,
        }
    }

    pub(super) fn push(&mut self, text: &str) -> Verdict {
        self.text.push_str(text);
        self.dense
            .extend(text.chars().filter(|c| !c.is_whitespace()));
        let dense = self.dense.as_str();
        if self
            .starts
            .iter()
            .any(|start| dense.starts_with(start.as_str()))
        {
            Verdict::Call
        } else if dense.is_empty() || self.starts.iter().any(|start| start.starts_with(dense)) {
            Verdict::Open
        } else {
            Verdict::Text
        }
    }

    /// A block follows: white space alone is a separator.
    pub(super) fn before_block(mut self) -> Self {
        self.keep_space &= !self.dense.is_empty();
        self
    }

    /// Returns true if the text is white space so far.
    pub(super) fn is_blank(&self) -> bool {
        self.dense.is_empty()
    }

    /// The text as the model wrote it.
    pub(super) fn raw(&self) -> &str {
        &self.text
    }

    /// The text as output.
    pub(super) fn visible(&self) -> &str {
        if self.keep_space {
            &self.text
        } else {
            self.text.trim_start()
        }
    }
}
