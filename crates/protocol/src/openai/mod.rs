//! OpenAI's dialect, with the fields that vLLM, llama.cpp and mlx-lm added to it.
//!
//! Source: the API reference as `openai` 3.57 types it.

pub mod chat_completions;
pub mod completions;
pub mod embeddings;
pub mod error;
mod freeform;
mod grammar;
pub(crate) mod logprobs;
mod messages;
pub mod models;
mod nullable;
mod reasoning;
mod refused;
pub mod rerank;
mod response_format;
pub mod responses;
mod sampling;
mod stop;
mod texts;
pub mod tokenize;
pub(crate) mod tools;
mod truncation;
mod usage;
