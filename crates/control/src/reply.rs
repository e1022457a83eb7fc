//! Errors of control routes on the wire: `{"error": {"code", "message", "param"}}`.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use macmlx_inference::InferenceError;
use serde::Serialize;
use utoipa::ToSchema;

/// Why a control route did not do what was asked, for the program that asked and for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    param: Option<String>,
}

/// The body of every answer that is not a success.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Debug, Serialize, ToSchema)]
struct ErrorDetail {
    /// Stays as it is from version to version.
    code: String,
    /// What happened and what to do, for a person.
    message: String,
    /// The field of the request that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    param: Option<String>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            param: None,
        }
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// One field of the request is wrong.
    pub fn invalid_param(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            param: Some(param.into()),
            ..Self::invalid(message)
        }
    }

    /// Something that was named is not there; the code says what kind of thing.
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// What was asked for does not go with how things are.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// The machine failed, not the caller.
    pub fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, code, message)
    }

    pub fn code(&self) -> &'static str {
        self.code
    }

    pub fn message(&self) -> &str {
        &self.message
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ErrorBody {
            error: ErrorDetail {
                code: self.code.into(),
                message: self.message,
                param: self.param,
            },
        };
        (self.status, Json(body)).into_response()
    }
}

impl From<InferenceError> for Problem {
    fn from(error: InferenceError) -> Self {
        let (status, code) = match &error {
            InferenceError::ModelNotFound { .. } => (StatusCode::NOT_FOUND, "model_not_found"),
            InferenceError::AmbiguousModel { .. } => (StatusCode::BAD_REQUEST, "ambiguous_model"),
            InferenceError::InvalidRequest { .. }
            | InferenceError::Unsupported { .. }
            | InferenceError::Template { .. } => (StatusCode::BAD_REQUEST, "invalid_request"),
            InferenceError::ContextLength { .. } => {
                (StatusCode::BAD_REQUEST, "context_length_exceeded")
            }
            InferenceError::ModelLoad { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "load_failed"),
            InferenceError::OutOfMemory { .. } => {
                (StatusCode::INSUFFICIENT_STORAGE, "out_of_memory")
            }
            InferenceError::Overloaded | InferenceError::ShuttingDown => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
            }
            InferenceError::Cancelled
            | InferenceError::InvalidOutput { .. }
            | InferenceError::Engine { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "engine_failed"),
        };
        let message = error.to_string();
        let param = match error {
            InferenceError::InvalidRequest { param, .. } => param,
            InferenceError::Unsupported { param, .. } => Some(param),
            _ => None,
        };
        Self {
            param,
            ..Self::new(status, code, message)
        }
    }
}

/// A blocking task that panicked or was cancelled.
impl From<tokio::task::JoinError> for Problem {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::failed("failed", error.to_string())
    }
}
