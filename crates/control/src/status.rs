//! What the server holds and has done.

use std::{path::PathBuf, sync::Arc, time::Instant};

use axum::{Json, extract::State, http::StatusCode};
use macmlx_inference::{Backend, Catalog, LoadedModel};
use serde::Serialize;
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::Activity;

/// What the status is made of.
#[derive(Clone)]
pub struct Sources {
    pub backend: Arc<dyn Backend>,
    pub catalog: Arc<dyn Catalog>,
    pub activity: Arc<Activity>,
    /// Folder of the models, for people.
    pub models: PathBuf,
    /// When the server started.
    pub started: Instant,
    /// Begins an orderly end.
    pub shut_down: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Sources")
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// `/x/status` and `/x/shutdown`.
pub fn routes() -> OpenApiRouter<Arc<Sources>> {
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
async fn shut_down(State(sources): State<Arc<Sources>>) -> (StatusCode, Json<Stopping>) {
    (sources.shut_down)();
    (StatusCode::ACCEPTED, Json(Stopping { status: "stopping" }))
}

#[expect(
    clippy::struct_field_names,
    reason = "the fields are the wire's, and `status` is one"
)]
/// The first seven fields are those of earlier versions.
#[derive(Debug, Serialize, ToSchema)]
struct Status {
    /// `loaded` or `idle`.
    status: &'static str,
    loaded_model: Option<String>,
    /// Resident memory of this process.
    memory_used_gb: f64,
    memory_total_gb: f64,
    uptime_seconds: f64,
    requests_total: u64,
    tokens_generated_total: u64,
    requests_running: u64,
    prompt_tokens_total: u64,
    models: Vec<LoadedModelStatus>,
    local_models: usize,
    models_directory: String,
    pid: u32,
    version: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
struct LoadedModelStatus {
    id: String,
    memory_bytes: u64,
    active_requests: u32,
    idle_seconds: u64,
    weights: String,
}

impl From<LoadedModel> for LoadedModelStatus {
    fn from(model: LoadedModel) -> Self {
        Self {
            id: model.id,
            memory_bytes: model.memory_bytes,
            active_requests: model.active_requests,
            idle_seconds: model.idle.as_secs(),
            weights: model.weights,
        }
    }
}

/// Tell what the server holds and has done.
#[utoipa::path(get, path = "/x/status", responses((status = 200, body = Status)))]
async fn status(State(sources): State<Arc<Sources>>) -> Json<Status> {
    let models: Vec<LoadedModelStatus> = sources
        .backend
        .loaded()
        .into_iter()
        .map(LoadedModelStatus::from)
        .collect();
    let (used_bytes, total_bytes) = memory();
    let catalog = sources.catalog.clone();
    let local_models = tokio::task::spawn_blocking(move || catalog.list().len())
        .await
        .unwrap_or_default();
    Json(Status {
        status: if models.is_empty() { "idle" } else { "loaded" },
        loaded_model: models.first().map(|model| model.id.clone()),
        memory_used_gb: gigabytes(used_bytes),
        memory_total_gb: gigabytes(total_bytes),
        uptime_seconds: sources.started.elapsed().as_secs_f64(),
        requests_total: sources.activity.requests(),
        tokens_generated_total: sources.activity.completion_tokens(),
        requests_running: sources.activity.running(),
        prompt_tokens_total: sources.activity.prompt_tokens(),
        models,
        local_models,
        models_directory: sources.models.display().to_string(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// Resident bytes of this process and bytes of the machine.
fn memory() -> (u64, u64) {
    let mut system = System::new();
    system.refresh_memory();
    let used = sysinfo::get_current_pid().ok().and_then(|pid| {
        system.refresh_processes_specifics(
            ProcessesToUpdate::Some(&[pid]),
            true,
            ProcessRefreshKind::nothing().with_memory(),
        );
        system.process(pid).map(sysinfo::Process::memory)
    });
    (used.unwrap_or_default(), system.total_memory())
}

fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
