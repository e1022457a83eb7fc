//! The `/x` routes: what the owner of a server sees and does, and nobody else.
//!
//! Every route needs the control token, whoever asks and wherever from. The host check that guards
//! all routes stands in front of these, too; what is checked here is the token and the origin.

mod access;
mod activity;
mod models;
mod reply;
mod status;

use std::{path::PathBuf, sync::Arc, time::Instant};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    middleware,
    routing::{get, post},
};
use macmlx_inference::{Backend, Catalog};
use serde_json::{Value, json};

pub use activity::{Activity, Counted};

/// What control acts on.
#[derive(Clone)]
pub struct Control {
    pub backend: Arc<dyn Backend>,
    pub catalog: Arc<dyn Catalog>,
    pub activity: Arc<Activity>,
    /// The secret that opens the routes.
    pub token: String,
    /// Folder of the models, for people.
    pub models: PathBuf,
    /// When the server started.
    pub started: Instant,
    /// Begins an orderly end.
    pub shut_down: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Control")
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// The routes, without a fallback, to be merged into the server's router.
pub fn router(control: Control) -> Router {
    Router::new()
        .route("/x/status", get(status::status))
        .route("/x/models/load", post(models::load))
        .route("/x/models/unload", post(models::unload))
        .route("/x/shutdown", post(shut_down))
        .route_layer(middleware::from_fn_with_state(
            control.clone(),
            access::check,
        ))
        .with_state(control)
}

async fn shut_down(State(control): State<Control>) -> (StatusCode, Json<Value>) {
    (control.shut_down)();
    (StatusCode::ACCEPTED, Json(json!({"status": "stopping"})))
}
