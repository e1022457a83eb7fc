//! What the server holds and has done.

use axum::{Json, extract::State};
use macmlx_inference::LoadedModel;
use serde::Serialize;
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};

use crate::Control;

#[expect(
    clippy::struct_field_names,
    reason = "the fields are the wire's, and `status` is one"
)]
/// The first seven fields are those of earlier versions.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
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
    models: Vec<Model>,
    local_models: usize,
    models_directory: String,
    pid: u32,
    version: &'static str,
}

#[derive(Debug, Serialize)]
struct Model {
    id: String,
    memory_bytes: u64,
    active_requests: u32,
    idle_seconds: u64,
    weights: String,
}

impl From<LoadedModel> for Model {
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

pub(crate) async fn status(State(control): State<Control>) -> Json<Status> {
    let models: Vec<Model> = control
        .backend
        .loaded()
        .into_iter()
        .map(Model::from)
        .collect();
    let (used_bytes, total_bytes) = memory();
    let catalog = control.catalog.clone();
    let local_models = tokio::task::spawn_blocking(move || catalog.list().len())
        .await
        .unwrap_or_default();
    Json(Status {
        status: if models.is_empty() { "idle" } else { "loaded" },
        loaded_model: models.first().map(|model| model.id.clone()),
        memory_used_gb: gigabytes(used_bytes),
        memory_total_gb: gigabytes(total_bytes),
        uptime_seconds: control.started.elapsed().as_secs_f64(),
        requests_total: control.activity.requests(),
        tokens_generated_total: control.activity.completion_tokens(),
        requests_running: control.activity.running(),
        prompt_tokens_total: control.activity.prompt_tokens(),
        models,
        local_models,
        models_directory: control.models.display().to_string(),
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
