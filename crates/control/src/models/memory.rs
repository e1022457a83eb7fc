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
    let card = models.find(wanted.model).await?;
    models.backend.load(card.clone()).await?;
    Ok(Json(Loaded {
        status: "loaded",
        model: card.id.clone(),
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
    let mut ids: Vec<String> = models
        .backend
        .loaded()
        .into_iter()
        .map(|model| model.id)
        .collect();
    if let Some(name) = wanted.and_then(|Body(wanted)| wanted.model) {
        // A model in memory can be dropped also when its files are gone.
        let id = if ids.contains(&name) {
            name
        } else {
            models.find(name).await?.id.clone()
        };
        ids = vec![id];
    }
    let mut unloaded = Vec::new();
    for id in ids {
        if models.backend.unload(id.clone()).await? {
            unloaded.push(id);
        }
    }
    Ok(Json(Unloaded {
        status: "unloaded",
        models: unloaded,
    }))
}
