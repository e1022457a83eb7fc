//! OpenAI's dialect, with the fields that vLLM, llama.cpp and mlx-lm added to it.
//!
//! Source: the API reference as `openai` 3.57 types it.

pub mod chat_completions;
pub mod completions;
pub mod embeddings;
pub mod error;
mod freeform;
pub(crate) mod grammar;
pub mod infill;
pub(crate) mod logprobs;
pub(crate) mod messages;
pub mod models;
mod nullable;
mod prompt_limit;
mod reasoning;
pub mod rerank;
mod response_format;
pub mod responses;
pub(crate) mod sampling;
mod stop;
mod texts;
pub mod tokenize;
pub(crate) mod tools;
mod truncation;
mod usage;
