//! Anthropic's dialect.
//!
//! Source: the API reference as `anthropic` 2.14 types it.

mod assembly;
mod content;
mod context_management;
mod conversation;
pub mod count_tokens;
mod encoder;
pub mod error;
pub mod messages;
pub mod models;
mod output_format;
mod refused;
pub mod reply;
mod signature;
mod thinking;
mod tools;
