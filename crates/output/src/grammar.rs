//! Constrained decoding: which tokens may come next, by a grammar of the whole output.
//!
//! ```text
//! GenerateRequest ── output::lark ──▶ Lark of the whole output: reasoning, then calls or answer
//!                                        │ GrammarCompiler::compile (llguidance)
//!                                        ▼
//!                                    Constraint ── allowed ──▶ mask of the next token
//!                                        ▲                         │
//!                                        └──────── advance ◀───────┘
//! ```
//!
//! Reasoning is part of the grammar, so that no token can straddle the place where the answer
//! begins: before it, any text is allowed up to the closing marker.

mod alternatives;
mod answer;
mod calls;
mod compiler;
mod gbnf;
mod output;
mod parameters;
mod pattern;
pub(crate) mod plain;
mod prepare;
mod rules;
mod schema;
mod vocabulary;

pub(crate) use alternatives::Alternative;
pub use answer::refusal;
pub(crate) use calls::{Callable, Calls, Marked, Wanted};
pub use compiler::{Constraint, GrammarCompiler};
pub use output::{Lark, OutputGrammar, lark};
pub(crate) use parameters::{Items, Parameter, Parameters};
pub(crate) use pattern::Pattern;
pub(crate) use rules::{Rules, Symbol};
pub use vocabulary::Vocabulary;

/// The one line of a message of llguidance's that says what is wrong; it shows where as well, over
/// several lines.
fn brief(message: &str) -> &str {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    lines
        .find_map(|line| line.trim().strip_prefix("error: "))
        .unwrap_or(first)
}
