//! Ollama's routes.

mod files;
mod generation;
mod models;

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    response::Response,
    routing::{any, delete, get, post},
};
use macmlx_protocol::{
    Dialect, Error,
    ollama::{chat::Chat, generate::Generate, refused},
};

use crate::{exchange::respond, router::App};

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/chat", post(generation::answer::<Chat>))
        .route("/api/generate", post(generation::answer::<Generate>))
        .route("/api/tags", get(models::tags))
        .route("/api/show", post(models::show))
        .route("/api/ps", get(models::processes))
        .route("/api/version", get(models::version))
        .route("/api/pull", post(files::pull))
        .route("/api/delete", delete(files::delete))
        .route("/api/copy", post(files::copy))
        .route("/api/create", post(async || refuse(&refused::create())))
        .route("/api/push", post(async || refuse(&refused::push())))
        .route(
            "/api/blobs/{digest}",
            any(async || refuse(&refused::blobs())),
        )
        .route("/api/embed", post(embed))
        .route("/api/embeddings", post(embed))
}

async fn embed(request: Request) -> Response {
    refuse(&refused::embed(request.uri().path()))
}

fn refuse(error: &Error) -> Response {
    respond(Dialect::Ollama.error_reply(error))
}
