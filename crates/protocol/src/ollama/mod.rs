//! Ollama's dialect.
//!
//! Source: `api/types.go` and `server/routes.go` of Ollama, August 2026.

pub mod answer;
pub mod chat;
mod context;
pub mod create;
pub mod embed;
pub mod embedding;
pub mod embeddings;
pub mod error;
pub mod files;
pub mod generate;
pub mod generation;
mod messages;
pub mod models;
mod options;
pub mod refused;
pub mod show;
mod think;

use crate::Error;

/// The model a request names; Ollama's older field is `name`.
fn read_model_name(model: Option<String>, name: Option<String>) -> Result<String, Error> {
    model
        .or(name)
        .filter(|model| !model.trim().is_empty())
        .ok_or_else(|| Error::invalid("model", "model is required"))
}

/// Refuses a field that would change the answer.
fn refuse_if(is_asked: bool, param: &str, reason: &str) -> Result<(), Error> {
    if is_asked {
        Err(Error::unsupported(param, reason))
    } else {
        Ok(())
    }
}
