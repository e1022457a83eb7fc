//! Ollama's dialect.

pub mod error;
