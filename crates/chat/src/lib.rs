//! Everything between text and tokens: tokenizer, streaming detokenizer, chat templates and stop
//! sequences, with the readers and grammars of `macmlx-output` behind a tokenizer.
//!
//! A backend uses [`ChatModel`], loaded once for a model folder, and one [`ChoiceOutput`] around
//! one [`OutputStream`] for each sequence:
//!
//! ```text
//! Prompt ── ChatModel::prompt ──▶ Rendered { text, tokens, … }
//!                                     │
//!                      ChatModel::output(&rendered, &stop)
//!                                     ▼
//! token id ── OutputStream::push ──▶ OutputPiece { piece, tokens }
//!                                     │
//!                              ChoiceOutput::push
//!                                     ▼
//!                              GenerationEvent
//! ```
//!
//! Nothing here knows MLX or HTTP.

mod chat_model;
mod choice_output;
mod detokenizer;
mod encoder_tokenizer;
mod infill;
mod output_formats;
mod output_stream;
mod stop;
mod template;
mod tokenizer;

pub use chat_model::{ChatModel, Rendered};
pub use choice_output::ChoiceOutput;
pub use detokenizer::{Detokenizer, FirstSpace, SpecialTokens};
pub use encoder_tokenizer::{AnswerTokens, EncoderTokenizer};
pub use macmlx_output::grammar::Constraint;
pub use output_stream::{Finish, OutputPiece, OutputStream};
pub use template::ChatTemplate;
pub use tokenizer::{EncoderTokens, Tokenizer};
