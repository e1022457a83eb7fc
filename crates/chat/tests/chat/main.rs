//! The crate as the engine sees it, on small tokenizers and on templates judged by jinja2.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod answer_grammars;
mod call_grammars;
mod call_schemas;
mod call_templates;
mod detokenizer;
mod encoders;
mod forced_calls;
mod generic_tools;
mod grammars;
mod hostile_templates;
mod infill;
mod model;
mod model_output;
mod templates;
mod tokenizers;
mod walks;
mod ways_of_writing;
