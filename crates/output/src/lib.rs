//! What a model writes: generated text taken apart into visible text, reasoning and tool calls, and
//! grammars that hold it to them.
//!
//! - [`formats`] lists how families of models mark reasoning and calls. [`formats::detect`] tells
//!   from the text of a chat template which one a model writes; which template that is, and what
//!   overrides it, is the caller's business.
//! - [`OutputParser`] reads the output in these formats, wherever it is cut.
//! - [`grammar`] says which tokens may come next, so that calls and answers are what was asked for.
//!
//! Nothing here knows tokenizers: text comes in as text, and a grammar asks a
//! [`grammar::Vocabulary`] for the bytes of its tokens.

mod argument;
mod block;
pub mod formats;
pub mod grammar;
mod lead;
mod literal;
mod needles;
mod open_block;
mod parser;
mod readers;
mod scan;
mod spans;
mod tools;
mod value_end;

pub(crate) use block::{Block, Sink, Step};
pub use needles::{Found, Scanner};
pub use parser::{Ending, OutputParser};
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
/// between them. A call that was cut before its arguments were whole has no `End`.
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
