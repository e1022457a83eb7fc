//! What can go wrong between a model folder and its logits.

use std::path::PathBuf;

/// Errors of loading and running a model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("cannot read {path}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("config.json is not valid: {0}")]
    Config(#[from] macmlx_json::Error),
    /// Another JSON file of the folder.
    #[error("{path} is not valid: {source}")]
    File {
        path: PathBuf,
        source: macmlx_json::Error,
    },
    #[error("architecture `{0}` is not supported")]
    UnknownArchitecture(String),
    /// A known setting of a config that this version cannot honour.
    #[error("`{setting}` is not supported: {reason}")]
    Unsupported { setting: String, reason: String },
    /// Weights do not fit the architecture; every key is named.
    #[error("weights do not match the architecture: {0}")]
    Weights(String),
    /// A weight file that MLX cannot read, or one that the index lists and the folder lacks.
    #[error("cannot load {path}: {reason}; download the model again")]
    WeightFile { path: PathBuf, reason: String },
    #[error("a text of {tokens} tokens is longer than the {limit} that this model reads")]
    TextTooLong { tokens: usize, limit: usize },
    #[error("token {token} is not in this model's vocabulary of {vocab}")]
    UnknownToken { token: u32, vocab: u32 },
    /// MLX refused or failed; the words are MLX's.
    #[error("MLX: {}", .0.what())]
    Mlx(#[from] mlx_rs::error::Exception),
}

impl ModelError {
    pub(crate) fn unsupported(setting: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unsupported {
            setting: setting.into(),
            reason: reason.into(),
        }
    }
}

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, ModelError>;
