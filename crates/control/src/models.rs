//! Loading and unloading models ahead of and after requests.

use std::time::Instant;

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    Control,
    reply::{failure, refuse},
};

/// Which model; `model_path` is how older clients name it.
#[derive(Debug, Default, Deserialize)]
struct Wanted {
    #[serde(alias = "model_path")]
    model: Option<String>,
}

pub(crate) async fn load(State(control): State<Control>, body: Bytes) -> Response {
    let Some(model) = wanted(&body).and_then(|wanted| wanted.model) else {
        return refuse(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "the body must be a JSON object with `model`",
        );
    };
    let begun = Instant::now();
    match control.backend.load(model).await {
        Ok(id) => Json(json!({
            "status": "loaded", "model": id, "load_time_ms": begun.elapsed().as_millis() as u64
        }))
        .into_response(),
        Err(error) => failure(&error),
    }
}

/// Unloads one model or, without a name, all of them.
pub(crate) async fn unload(State(control): State<Control>, body: Bytes) -> Response {
    let Some(wanted) = wanted(&body) else {
        return refuse(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "the body must be empty or a JSON object with `model`",
        );
    };
    let names = match wanted.model {
        Some(name) => vec![name],
        None => control
            .backend
            .loaded()
            .into_iter()
            .map(|model| model.id)
            .collect(),
    };
    let mut unloaded = Vec::new();
    for name in names {
        match control.backend.unload(name.clone()).await {
            Ok(true) => unloaded.push(name),
            Ok(false) => {}
            Err(error) => return failure(&error),
        }
    }
    Json(json!({"status": "unloaded", "models": unloaded})).into_response()
}

fn wanted(body: &[u8]) -> Option<Wanted> {
    if body.trim_ascii().is_empty() {
        return Some(Wanted::default());
    }
    serde_json::from_slice(body).ok()
}
