//! Whether the server is there, and what it is.

use axum::Json;
use serde_json::{Value, json};

pub(crate) async fn health() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

pub(crate) async fn root() -> Json<Value> {
    Json(json!({
        "object": "api",
        "name": "macMLX",
        "version": env!("CARGO_PKG_VERSION"),
        "openai_base_path": "/v1",
        "health": "/health",
        "models": "/v1/models",
    }))
}
