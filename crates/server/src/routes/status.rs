//! Whether the server is there, what it is and what it takes.

use std::sync::Arc;

use axum::{Json, extract::State, routing::get};
use serde::Serialize;
use utoipa::{ToSchema, openapi::OpenApi};

use crate::{
    api::{Api, Doc},
    router::App,
};

/// A sign of life.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
}

/// What answers here.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct About {
    object: &'static str,
    name: &'static str,
    version: &'static str,
    openai_base_path: &'static str,
    health: &'static str,
    models: &'static str,
    document: &'static str,
}

/// Routes that ask for no key, without `/v1`.
pub(crate) fn health_routes() -> Api {
    Api::default().route(
        "/health",
        get(health),
        [Doc::get("Tell that the server is there")
            .reply::<Health>()
            .open()],
    )
}

/// Routes that ask for no key.
pub(crate) fn routes() -> Api {
    Api::default()
        .untold("/", get(root))
        .untold("/api/hello", get(health))
        .route(
            "/v1",
            get(about),
            [Doc::get("Tell what answers here").reply::<About>().open()],
        )
        .untold("/openapi.json", get(document))
}

async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Clients know Ollama by these words.
async fn root() -> &'static str {
    "Ollama is running"
}

async fn about() -> Json<About> {
    Json(About {
        object: "api",
        name: "macMLX",
        version: env!("CARGO_PKG_VERSION"),
        openai_base_path: "/v1",
        health: "/health",
        models: "/v1/models",
        document: "/openapi.json",
    })
}

async fn document(State(app): State<Arc<App>>) -> Json<OpenApi> {
    Json(app.document.clone())
}
