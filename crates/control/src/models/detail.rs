//! One local model: what its files say, whether it fits, and its removal.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use macmlx_fit::{Fit, Question, StoredWeights};
use macmlx_inference::{ModelDescription, ModelFilesError, ModelTask};
use macmlx_store::models::Entry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{
    Model, Models,
    list::{self, Snapshot},
};
use crate::{Problem, body::Asked, events::Event, reply::ErrorBody};

/// A model and what its files say.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelDetail {
    #[serde(flatten)]
    model: Model,
    /// Text of the licence file.
    #[schema(required)]
    license: Option<String>,
    /// `config.json`.
    #[schema(value_type = Object)]
    config: Map<String, Value>,
    /// `generation_config.json`.
    #[schema(required, value_type = Option<Object>)]
    generation_config: Option<Map<String, Value>>,
    #[schema(required)]
    chat_template: Option<String>,
    /// The files of the model, sorted by path.
    files: Vec<ModelFile>,
    /// The estimate for 8,192 tokens of context, or the model's own where that is less.
    fit: Fit,
}

/// A file of a model.
#[derive(Debug, Serialize, ToSchema)]
struct ModelFile {
    path: String,
    size_bytes: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Deleted {
    id: String,
    freed_bytes: u64,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FitQuery {
    /// Length of the conversation; 8,192 unless said, and never more than the model's own.
    context_tokens: Option<u32>,
}

/// Describe a model of this machine.
#[utoipa::path(
    get,
    path = "/x/models/{id}",
    params(("id" = String, Path)),
    responses((status = 200, body = ModelDetail), (status = 404, body = ErrorBody))
)]
pub(super) async fn model(
    State(models): State<Arc<Models>>,
    Path(id): Path<String>,
) -> Result<Json<ModelDetail>, Problem> {
    let snapshot = Snapshot::take(&models).await?;
    let entry = entry(&snapshot, &id)?;
    let description = description(&models, entry).await?;
    let folder = entry.path.clone();
    let mut files: Vec<ModelFile> = tokio::task::spawn_blocking(move || {
        let files = list::files(&folder);
        files
            .map(|(path, size_bytes)| ModelFile { path, size_bytes })
            .collect()
    })
    .await?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let fit = estimate(&models, &snapshot, entry, &description.config, None);
    let chat_template = match entry.card() {
        Some(card) => models.traits(card).await.chat_template,
        None => None,
    };
    Ok(Json(ModelDetail {
        model: snapshot.show(&models, entry).await,
        license: description.license,
        config: object(description.config).unwrap_or_default(),
        generation_config: object(description.generation_config),
        chat_template,
        files,
        fit,
    }))
}

/// Estimate whether a model fits in memory.
#[utoipa::path(
    get,
    path = "/x/models/{id}/fit",
    params(("id" = String, Path), FitQuery),
    responses((status = 200, body = Fit), (status = 404, body = ErrorBody))
)]
pub(super) async fn model_fit(
    State(models): State<Arc<Models>>,
    Path(id): Path<String>,
    Asked(FitQuery { context_tokens }): Asked<FitQuery>,
) -> Result<Json<Fit>, Problem> {
    if context_tokens == Some(0) {
        let message = "`context_tokens` is at least 1";
        return Err(Problem::invalid_param("context_tokens", message));
    }
    let snapshot = Snapshot::take(&models).await?;
    let entry = entry(&snapshot, &id)?;
    let config = description(&models, entry).await?.config;
    Ok(Json(estimate(
        &models,
        &snapshot,
        entry,
        &config,
        context_tokens,
    )))
}

/// Unload a model and delete its files.
#[utoipa::path(
    delete,
    path = "/x/models/{id}",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Deleted),
        (status = 404, body = ErrorBody),
        (status = 409, description = "It is answering", body = ErrorBody)
    )
)]
pub(super) async fn delete_model(
    State(models): State<Arc<Models>>,
    Path(id): Path<String>,
) -> Result<Json<Deleted>, Problem> {
    let snapshot = Snapshot::take(&models).await?;
    let entry = entry(&snapshot, &id)?;
    if snapshot.active_requests(&id) > 0 {
        let message = format!("`{id}` is answering; stop that first");
        return Err(Problem::conflict("busy", message));
    }
    let freed_bytes = list::size_bytes(entry);
    let id = models.files.delete(id).await?;
    models.events.publish(Event::ModelsChanged);
    Ok(Json(Deleted { id, freed_bytes }))
}

/// The model of exactly that id.
fn entry<'a>(snapshot: &'a Snapshot, id: &str) -> Result<&'a Entry, Problem> {
    snapshot
        .entries
        .iter()
        .find(|entry| entry.id == id)
        .ok_or_else(|| {
            let message = format!("model `{id}` is not on this machine");
            Problem::not_found("model_not_found", message)
        })
}

/// What the files of a complete model say; others say nothing.
async fn description(models: &Arc<Models>, entry: &Entry) -> Result<ModelDescription, Problem> {
    let Some(card) = entry.card().cloned() else {
        return Ok(ModelDescription::default());
    };
    let catalog = models.catalog.clone();
    Ok(tokio::task::spawn_blocking(move || catalog.describe(&card)).await?)
}

fn estimate(
    models: &Models,
    snapshot: &Snapshot,
    entry: &Entry,
    config: &Value,
    context_tokens: Option<u32>,
) -> Fit {
    let question = Question {
        config,
        weights: StoredWeights {
            size_bytes: list::size_bytes(entry),
            parameters: entry.card().and_then(|card| card.parameters),
        },
        generates: entry
            .card()
            .is_none_or(|card| card.task == ModelTask::Generate),
        context_tokens,
        other_models_bytes: snapshot.others_bytes(&entry.id),
    };
    macmlx_fit::estimate(&question, &models.fit)
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

impl From<ModelFilesError> for Problem {
    fn from(error: ModelFilesError) -> Self {
        let message = error.to_string();
        match error {
            ModelFilesError::Model(error) => error.into(),
            ModelFilesError::Name(_) => Self::invalid(message),
            ModelFilesError::NotOnHub(_) => Self::not_found("not_on_hub", message),
            ModelFilesError::Hub(_) => Self::new(StatusCode::BAD_GATEWAY, "hub_failed", message),
            ModelFilesError::Disk(_) => Self::failed("disk_failed", message),
        }
    }
}
