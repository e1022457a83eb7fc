//! Everything between text and tokens: tokenizer, streaming detokenizer, chat templates, output
//! formats and stop sequences.
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
mod grammar;
mod needles;
mod output;
mod output_formats;
mod output_stream;
mod stop;
mod template;
mod tokenizer;

pub use chat_model::{ChatModel, Rendered};
pub use choice_output::ChoiceOutput;
pub use detokenizer::{Detokenizer, FirstSpace, SpecialTokens};
pub use encoder_tokenizer::{AnswerTokens, EncoderTokenizer};
pub use grammar::{
    Alternative, Callable, Calls, Constraint, Items, Marked, Parameter, Parameters, Pattern, Rules,
    Symbol, Wanted,
};
pub use output::{
    Block, CallPart, OutputParser, Piece, Sink, Span, Step, Tools,
    formats::{FORMATS, Format, Kind, detect as detect_format},
};
pub use output_stream::{Finish, OutputPiece, OutputStream};
pub use stop::StopMatcher;
pub use template::ChatTemplate;
pub use tokenizer::{EncoderTokens, Tokenizer};
