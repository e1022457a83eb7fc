//! Everything between text and tokens: tokenizer, streaming detokenizer, chat templates, output
//! formats and stop sequences.
//!
//! The engine uses [`ChatModel`], loaded once for a model folder, and one [`OutputStream`] for
//! each sequence:
//!
//! ```text
//! Prompt ── ChatModel::prompt ──▶ Rendered { text, tokens, … }
//!                                     │
//!                      ChatModel::output(&rendered, &stop)
//!                                     ▼
//! token id ── OutputStream::push ──▶ OutputPiece { piece, tokens }
//! ```
//!
//! Nothing here knows MLX or HTTP.

mod chat_model;
mod detokenizer;
mod needles;
mod output;
mod output_stream;
mod stop;
mod template;
mod tokenizer;

pub use chat_model::{ChatModel, Rendered};
pub use detokenizer::{Detokenizer, FirstSpace, SpecialTokens};
pub use output::{
    OutputParser, Piece, Span,
    formats::{Call, Close, FORMATS, Format, Kind, Parsed},
};
pub use output_stream::{Finish, OutputPiece, OutputStream};
pub use stop::StopMatcher;
pub use template::ChatTemplate;
pub use tokenizer::Tokenizer;
