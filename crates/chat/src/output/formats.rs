//! The output formats: what marks reasoning and tool calls in generated text.
//!
//! To add one: a file here, its line in [`FORMATS`], its cases in `tests/output/`. Chunking,
//! markers cut in two, missing closes and bodies that do not parse are the parser's business.

mod bare_json;
mod hermes;
mod llama3_json;
mod mistral;
mod think;

use std::fmt::Debug;

/// All formats. Of those that recognise a template, the first of each kind is used.
pub static FORMATS: &[&dyn Format] = &[
    &think::Think,
    &mistral::Mistral,
    &hermes::Hermes,
    &llama3_json::Llama3Json,
];

/// How a family of models marks one kind of block in its output.
pub trait Format: Debug + Send + Sync {
    /// As model cards and other servers call it.
    fn name(&self) -> &'static str;

    fn kind(&self) -> Kind;

    /// Whether a model with this chat template writes this format.
    fn detect(&self, template: &str) -> bool;

    /// Markers that begin a block wherever they stand. None may be a suffix of another's prefix.
    fn open(&self) -> &'static [&'static str];

    /// Texts that begin a block only as the first thing of the output, white space aside, and
    /// belong to the body. They are compared without white space.
    fn open_at_start(&self) -> &'static [&'static str] {
        &[]
    }

    /// What ends a block.
    fn close(&self) -> Close;

    /// Special tokens inside a body that `parse_body` needs to see.
    fn inner_markers(&self) -> &'static [&'static str] {
        &[]
    }

    /// Reads the text between the markers. Not asked for reasoning, whose body is the text itself.
    fn parse_body(&self, body: &str) -> Parsed;
}

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Reasoning,
    ToolCalls,
}

/// What ends a block. The next opening marker of the same format and the end of the output always
/// do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    Marker(&'static str),
    /// Nothing else.
    End,
}

/// A tool call without an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    /// JSON text as the model wrote it.
    pub arguments: String,
}

/// What a body turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Calls, at least one, and how many bytes at the end of the body are text after them, white
    /// space at the very end aside.
    Calls { calls: Vec<Call>, rest_len: usize },
    /// A string is still open, so the marker that seems to end the body is part of it.
    InsideString,
    /// No calls: the client gets it as text.
    Text,
}

/// The first format of a kind that recognises a template.
pub(crate) fn detect(template: &str, kind: Kind) -> Option<&'static dyn Format> {
    FORMATS
        .iter()
        .copied()
        .find(|format| format.kind() == kind && format.detect(template))
}
