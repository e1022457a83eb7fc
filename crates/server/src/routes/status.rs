//! Whether the server is there, and what it is.

use axum::Json;
use serde_json::{Value, json};

pub(crate) async fn health() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Clients know Ollama by these words.
pub(crate) async fn root() -> &'static str {
    "Ollama is running"
}

pub(crate) async fn about() -> Json<Value> {
    Json(json!({
        "object": "api",
        "name": "macMLX",
        "version": env!("CARGO_PKG_VERSION"),
        "openai_base_path": "/v1",
        "health": "/health",
        "models": "/v1/models",
    }))
}
