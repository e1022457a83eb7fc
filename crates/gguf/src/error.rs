//! Why a GGUF file cannot be imported, and what to do about it.

use std::{io, path::PathBuf};

/// Errors of an import. Nothing is left behind when one occurs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot access {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a GGUF file", path.display())]
    NotGguf { path: PathBuf },
    #[error("GGUF version {0} is not supported (versions 2 and 3 are); convert the file anew")]
    Version(u32),
    #[error("the file is damaged or cut short: {0}; fetch it again")]
    Damaged(String),
    #[error("the file lacks `{0}`, which an import needs")]
    MissingKey(String),
    #[error("`{key}` is not {expected}")]
    WrongKey { key: String, expected: &'static str },
    #[error(
        "architecture `{0}` cannot be imported (llama, qwen2, qwen3 and gemma3 can); look for an MLX version of the model"
    )]
    Architecture(String),
    #[error(
        "tensor `{tensor}` is {quantization}, which has no exact MLX form (Q4_0, Q4_1, Q8_0, F16, BF16 and F32 have); take another file of this model"
    )]
    Quantization {
        tensor: String,
        quantization: String,
    },
    #[error("tensor `{0}` belongs to a part of the architecture that cannot be imported")]
    UnknownTensor(String),
    #[error("tensor `{tensor}` has a scale that MLX's form cannot hold exactly")]
    Scale { tensor: String },
    #[error("tensor `{tensor}` has shape {shape:?}, which does not fit its model")]
    Shape { tensor: String, shape: Vec<u64> },
    #[error("{what} `{value}` cannot be imported exactly; look for an MLX version of the model")]
    Unsupported { what: &'static str, value: String },
    #[error(
        "the model has {part} of {count} parts in this file; join them with `llama-gguf-split --merge` first",
        part = 1
    )]
    Split { count: u64 },
    #[error("`{0}` cannot name a model; use OWNER/REPO of letters, digits, `-`, `_` and `.`")]
    Name(String),
    #[error("the import was stopped; nothing is left of it")]
    Stopped,
    #[error("{} exists already; remove it first or choose another --name", path.display())]
    Exists { path: PathBuf },
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
