//! What the visible answer must look like: constrained decoding.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A language the answer must be in. It governs what the client sees, not reasoning before it; where
/// tools are offered too, a call may take the answer's place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grammar {
    pub language: Language,
    /// Where it stands in the client's request, for a refusal that names it.
    pub param: String,
}

/// How a grammar is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Language {
    /// Any JSON object.
    JsonObject,
    /// JSON text that the schema (draft 4 to 2020-12) accepts. A keyword that cannot be enforced is
    /// refused.
    JsonSchema(Value),
    /// JSON text that the schema accepts as far as it can be enforced. What cannot be is left out.
    LooseJsonSchema(Value),
    /// The whole answer matches, in the syntax of Rust's `regex`.
    Regex(String),
    /// One of these texts, word for word.
    Choice(Vec<String>),
    /// Lark, as llguidance has it, or GBNF, as llama.cpp has it; told apart by `::=`.
    Rules(String),
}
