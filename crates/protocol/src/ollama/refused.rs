//! Ollama's routes that are refused, each with what to do instead.

use crate::Error;

/// `POST /api/push`.
pub fn push() -> Error {
    Error::unsupported("/api/push", "models are not uploaded from here")
}

/// `/api/blobs/{digest}`.
pub fn blobs() -> Error {
    Error::unsupported(
        "/api/blobs",
        "models are not made from uploaded files; pull one from Hugging Face or import a GGUF file \
         with `macmlx import`",
    )
}
