//! Anthropic's dialect.

pub mod error;
