//! Errors of control routes on the wire: `{"error": {"code", "message"}}`.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use macmlx_inference::InferenceError;
use serde_json::json;

pub(crate) fn refuse(status: StatusCode, code: &str, message: &str) -> Response {
    (
        status,
        Json(json!({"error": {"code": code, "message": message}})),
    )
        .into_response()
}

/// An error of the backend or the catalog.
pub(crate) fn failure(error: &InferenceError) -> Response {
    let (status, code) = match error {
        InferenceError::ModelNotFound { .. } => (StatusCode::NOT_FOUND, "model_not_found"),
        InferenceError::AmbiguousModel { .. } => (StatusCode::BAD_REQUEST, "ambiguous_model"),
        InferenceError::InvalidRequest { .. }
        | InferenceError::Unsupported { .. }
        | InferenceError::Template { .. }
        | InferenceError::ContextLength { .. } => (StatusCode::BAD_REQUEST, "invalid_request"),
        InferenceError::ModelLoad { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "load_failed"),
        InferenceError::OutOfMemory { .. } => (StatusCode::INSUFFICIENT_STORAGE, "out_of_memory"),
        InferenceError::Overloaded | InferenceError::ShuttingDown => {
            (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        }
        InferenceError::Cancelled
        | InferenceError::InvalidOutput { .. }
        | InferenceError::Engine { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "engine_failed"),
    };
    refuse(status, code, &error.to_string())
}
