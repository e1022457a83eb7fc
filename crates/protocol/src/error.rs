//! What can go wrong with a request before its first frame, in no dialect's words.

use macmlx_inference::InferenceError;

/// Each dialect maps each variant to its own wire form once.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The body or a value in it is wrong.
    #[error("{message}")]
    Invalid {
        /// Path of the field, such as `messages[0].role`; `None`: the body as a whole.
        param: Option<String>,
        message: String,
    },
    /// A known field that would change the answer and cannot be honoured.
    #[error("`{param}` is not supported: {reason}")]
    Unsupported { param: String, reason: String },
    /// The API key is missing or wrong.
    #[error(
        "incorrect or missing API key; send it as `Authorization: Bearer <key>` or `x-api-key: <key>`"
    )]
    Unauthorized,
    /// The request comes from where requests are not taken from.
    #[error("{message}")]
    Forbidden { message: String },
    /// Something kept from an earlier request is not there, or no longer.
    #[error(
        "no {kind} `{id}` is kept here: it was deleted, not stored, or made way for newer ones"
    )]
    NotKept {
        /// `response`, `conversation` or `item`.
        kind: &'static str,
        id: String,
        /// The field that names it; `None`: the request's own path does.
        param: Option<String>,
    },
    #[error("there is no route {method} {path}")]
    NoRoute { method: String, path: String },
    #[error("{path} does not take {method}")]
    WrongMethod { method: String, path: String },
    #[error("the request body is larger than {limit_bytes} bytes")]
    TooLarge { limit_bytes: usize },
    /// The body came too slowly.
    #[error("the request body stopped coming")]
    SlowBody,
    #[error("too many connections are open; close some or try again")]
    TooManyConnections,
    /// The body is compressed in a way that is not taken.
    #[error(
        "the content encoding `{encoding}` is not supported; send the body plain or as one of {}",
        Self::ENCODINGS
    )]
    UnsupportedEncoding { encoding: String },
    /// A bug; what happened is in the log.
    #[error("the server failed")]
    Internal,
    #[error(transparent)]
    Inference(#[from] InferenceError),
}

impl Error {
    /// The content encodings that request bodies may have, as `Accept-Encoding` lists them.
    pub const ENCODINGS: &str = "gzip, deflate, br, zstd";

    /// A value that is wrong.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid {
            param: Some(param.into()),
            message: message.into(),
        }
    }

    /// A field that is refused by name.
    pub fn unsupported(param: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unsupported {
            param: param.into(),
            reason: reason.into(),
        }
    }
}
