//! Generated text taken apart into visible text, reasoning and tool calls.

mod argument;
mod block;
pub(crate) mod formats;
mod lead;
mod literal;
mod open_block;
mod parser;
mod readers;
mod scan;
mod spans;
mod tools;
mod value_end;

pub use block::{Block, Sink, Step};
pub use parser::OutputParser;
pub use tools::Tools;
pub(crate) use tools::parameter_types;

/// A part of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// What the client shows.
    Text(String),
    /// Hidden thinking.
    Reasoning(String),
    /// A bit of a tool call.
    ToolCall(CallPart),
}

/// A tool call as it is written: one `Start`, any number of `Arguments`, one `End`, with nothing
/// between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallPart {
    Start {
        name: String,
    },
    /// The next JSON text of the arguments object, as the model wrote it.
    Arguments(String),
    End,
}

/// A piece and how much generated text it stands for.
///
/// The lengths of all spans add up to the length of the text, so that a piece can be traced to its
/// tokens. A span with an empty piece stands for markers and for white space around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub piece: Piece,
    /// Bytes of generated text, markers included.
    pub raw_len: usize,
}
