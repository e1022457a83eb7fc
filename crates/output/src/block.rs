//! What a format makes of the text after one of its opening markers.

use std::fmt::Debug;

use super::{CallPart, Piece};

/// Reads one block, from behind its opening marker to its end, wherever the text is cut.
///
/// What it decides must not depend on where the text was cut, so it decides only on text that is
/// there whole, and asks for more otherwise.
pub trait Block: Debug + Send {
    /// Looks at `text`, which is all of the block not yet taken, and takes from its front what is
    /// certain. `is_last`: no more text comes.
    ///
    /// Once a call has been started, all text up to its end is arguments. Before, and between
    /// calls, text that is no call is [`Step::Text`].
    fn read(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step;

    /// Whether all that comes is the answer.
    fn in_answer(&self) -> bool {
        false
    }

    /// Whether what comes next is visible text.
    fn in_text(&self) -> bool {
        self.in_answer()
    }

    /// Whether what comes next is reasoning.
    fn in_reasoning(&self) -> bool {
        false
    }
}

/// What became of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The block took so many bytes; what follows can be read at once.
    Took(usize),
    /// More text is needed. When there is none, what is left belongs to what is open.
    Wait,
    /// The block ends behind so many bytes.
    Over(usize),
    /// This is no block of the format: all text since it began, or since its last call ended, is
    /// text as it stands.
    Text,
}

/// Takes the pieces that a block yields.
#[derive(Debug, Default)]
pub struct Sink {
    pieces: Vec<Piece>,
    in_call: bool,
}

impl Sink {
    /// Visible text.
    pub fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.pieces.push(Piece::Text(text.into()));
        }
    }

    /// Thinking. White space at both ends of a block's reasoning is left out later.
    pub fn reasoning(&mut self, text: &str) {
        if !text.is_empty() {
            self.pieces.push(Piece::Reasoning(text.into()));
        }
    }

    /// A call begins.
    pub fn start(&mut self, name: &str) {
        self.end();
        self.in_call = true;
        self.call(CallPart::Start { name: name.into() });
    }

    /// Arguments of the call that has begun.
    pub fn arguments(&mut self, text: &str) {
        if self.in_call && !text.is_empty() {
            self.call(CallPart::Arguments(text.into()));
        }
    }

    /// Ends the call, if one has begun.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.in_call) {
            self.call(CallPart::End);
        }
    }

    /// Whether a call has begun and not ended.
    pub fn in_call(&self) -> bool {
        self.in_call
    }

    pub(super) fn take(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.pieces)
    }

    fn call(&mut self, part: CallPart) {
        self.pieces.push(Piece::ToolCall(part));
    }
}
