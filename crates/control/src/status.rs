//! What the application holds and has done.

use std::{path::PathBuf, sync::Arc, time::Instant};

use axum::{Json, extract::State, http::StatusCode};
use macmlx_inference::{Backend, Catalog, LoadedModel};
use macmlx_store::disk;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    Activity, Problem, Throughput,
    door::{Door, DoorState},
    machine::{Machine, Platform},
};

/// What the status is made of.
#[derive(Clone)]
pub struct StatusSources {
    pub backend: Arc<dyn Backend>,
    pub catalog: Arc<dyn Catalog>,
    pub activity: Arc<Activity>,
    pub door: Arc<dyn Door>,
    pub machine: Arc<Machine>,
    /// Folder of the models.
    pub models: PathBuf,
    /// Folder of everything.
    pub home: PathBuf,
    pub owner: Owner,
    /// When the application started.
    pub started: Instant,
    /// Begins an orderly end.
    pub shut_down: Arc<dyn Fn() + Send + Sync>,
}

/// What kind of process this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// The command line.
    Cli,
    /// The app.
    Gui,
}

impl std::fmt::Debug for StatusSources {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StatusSources")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// `/x/status` and `/x/shutdown`.
pub fn routes() -> OpenApiRouter<Arc<StatusSources>> {
    OpenApiRouter::new()
        .routes(routes!(status))
        .routes(routes!(shut_down))
}

#[derive(Debug, Serialize, ToSchema)]
struct Stopping {
    /// `stopping`.
    status: &'static str,
}

/// End the whole process in order.
#[utoipa::path(post, path = "/x/shutdown", responses((status = 202, body = Stopping)))]
async fn shut_down(State(sources): State<Arc<StatusSources>>) -> (StatusCode, Json<Stopping>) {
    (sources.shut_down)();
    (StatusCode::ACCEPTED, Json(Stopping { status: "stopping" }))
}

/// What it is at right now, the busiest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Doing {
    Generating,
    Loading,
    /// A model is in memory and nothing runs.
    Loaded,
    Idle,
}

#[expect(
    clippy::struct_field_names,
    reason = "the fields are the wire's, and `status` is one"
)]
/// The first seven fields are those of earlier versions.
#[derive(Debug, Serialize, ToSchema)]
struct Status {
    status: Doing,
    #[schema(required)]
    loaded_model: Option<String>,
    /// Resident memory of this process.
    memory_used_gb: f64,
    memory_total_gb: f64,
    uptime_seconds: f64,
    requests_total: u64,
    tokens_generated_total: u64,
    memory_used_bytes: u64,
    memory_total_bytes: u64,
    requests_running: u64,
    prompt_tokens_total: u64,
    models: Vec<LoadedModelStatus>,
    /// Complete models on disk.
    local_models: usize,
    models_directory: String,
    /// Free bytes of the volume of `models_directory`; null when they cannot be told.
    #[schema(required)]
    models_disk_free_bytes: Option<u64>,
    home: String,
    pid: u32,
    version: &'static str,
    owner: Owner,
    door: DoorState,
    throughput: Throughput,
    platform: Platform,
}

/// A model in memory.
#[derive(Debug, Serialize, ToSchema)]
struct LoadedModelStatus {
    id: String,
    memory_bytes: u64,
    active_requests: u32,
    idle_seconds: u64,
    /// Time until it leaves memory if it is not used; null: it stays.
    #[schema(required)]
    expires_in_seconds: Option<u64>,
    /// How its weights are held, for a person.
    weights: String,
}

impl From<LoadedModel> for LoadedModelStatus {
    fn from(model: LoadedModel) -> Self {
        Self {
            id: model.id,
            memory_bytes: model.memory_bytes,
            active_requests: model.active_requests,
            idle_seconds: model.idle.as_secs(),
            expires_in_seconds: model.expires_in.map(|left| left.as_secs()),
            weights: model.weights,
        }
    }
}

/// Tell what the application holds and has done.
#[utoipa::path(get, path = "/x/status", responses((status = 200, body = Status)))]
async fn status(State(sources): State<Arc<StatusSources>>) -> Result<Json<Status>, Problem> {
    let models: Vec<LoadedModelStatus> = sources
        .backend
        .loaded()
        .into_iter()
        .map(LoadedModelStatus::from)
        .collect();
    let (catalog, folder) = (sources.catalog.clone(), sources.models.clone());
    let (local_models, models_disk_free_bytes) =
        tokio::task::spawn_blocking(move || (catalog.list().len(), disk::free_bytes(&folder).ok()))
            .await?;
    let memory = sources.machine.memory();
    Ok(Json(Status {
        status: doing(&sources.activity, !models.is_empty()),
        loaded_model: models.first().map(|model| model.id.clone()),
        memory_used_gb: gigabytes(memory.used),
        memory_total_gb: gigabytes(memory.total),
        memory_used_bytes: memory.used,
        memory_total_bytes: memory.total,
        uptime_seconds: sources.started.elapsed().as_secs_f64(),
        requests_total: sources.activity.requests(),
        tokens_generated_total: sources.activity.completion_tokens(),
        requests_running: sources.activity.running(),
        prompt_tokens_total: sources.activity.prompt_tokens(),
        models,
        local_models,
        models_directory: sources.models.display().to_string(),
        models_disk_free_bytes,
        home: sources.home.display().to_string(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION"),
        owner: sources.owner,
        door: sources.door.state(),
        throughput: sources.activity.throughput(),
        platform: sources.machine.platform(),
    }))
}

fn doing(activity: &Activity, has_models: bool) -> Doing {
    if activity.running() > 0 {
        Doing::Generating
    } else if !activity.loading().is_empty() {
        Doing::Loading
    } else if has_models {
        Doing::Loaded
    } else {
        Doing::Idle
    }
}

fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
