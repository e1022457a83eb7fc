//! Loading and unloading models ahead of and after requests.

use std::{sync::Arc, time::Instant};

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Models;
use crate::{Problem, body::Body, reply::ErrorBody};

/// Which model to load.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Load {
    /// `model_path` is how older clients name it.
    #[serde(alias = "model_path")]
    model: String,
}

/// Which model to unload; none means all.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct Unload {
    #[serde(alias = "model_path")]
    model: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Loaded {
    /// `loaded`.
    status: &'static str,
    model: String,
    load_time_ms: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Unloaded {
    /// `unloaded`.
    status: &'static str,
    models: Vec<String>,
}

/// Load a model.
#[utoipa::path(
    post,
    path = "/x/models/load",
    request_body = Load,
    responses((status = 200, body = Loaded), (status = 404, body = ErrorBody))
)]
pub(super) async fn load_model(
    State(models): State<Arc<Models>>,
    Body(wanted): Body<Load>,
) -> Result<Json<Loaded>, Problem> {
    let begun = Instant::now();
    let model = models.backend.load(wanted.model).await?;
    Ok(Json(Loaded {
        status: "loaded",
        model,
        load_time_ms: begun.elapsed().as_millis() as u64,
    }))
}

/// Unload a model, or all.
#[utoipa::path(
    post,
    path = "/x/models/unload",
    request_body = Option<Unload>,
    responses((status = 200, body = Unloaded), (status = 404, body = ErrorBody))
)]
pub(super) async fn unload_model(
    State(models): State<Arc<Models>>,
    wanted: Option<Body<Unload>>,
) -> Result<Json<Unloaded>, Problem> {
    let wanted = wanted.and_then(|Body(wanted)| wanted.model);
    let names = match wanted {
        Some(name) => vec![name],
        None => models
            .backend
            .loaded()
            .into_iter()
            .map(|model| model.id)
            .collect(),
    };
    let mut unloaded = Vec::new();
    for name in names {
        if models.backend.unload(name.clone()).await? {
            unloaded.push(name);
        }
    }
    Ok(Json(Unloaded {
        status: "unloaded",
        models: unloaded,
    }))
}
