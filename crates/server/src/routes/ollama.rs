//! Ollama's routes.

pub(super) mod embedding;
mod files;
pub(super) mod generation;
mod models;

use axum::{
    response::Response,
    routing::{any, delete, get, post},
};
use macmlx_protocol::{
    Dialect, Error, Framing,
    ollama::{
        create::CreateRequest,
        files::{Copy, FilesRequest, Progress},
        models::{Processes, Tags, Version},
        refused, show,
    },
};

use crate::{
    api::{Api, Doc},
    exchange::respond,
};

pub(crate) fn routes() -> Api {
    Api::default()
        .route(
            "/api/tags",
            get(models::tags),
            [Doc::get("List the local models").reply::<Tags>()],
        )
        .route(
            "/api/show",
            post(models::show),
            [Doc::post("Describe a model")
                .body::<show::Request>()
                .reply::<show::Reply>()],
        )
        .route(
            "/api/ps",
            get(models::processes),
            [Doc::get("List the models in memory").reply::<Processes>()],
        )
        .route(
            "/api/version",
            get(models::version),
            [Doc::get("Tell the version of Ollama's API that is spoken").reply::<Version>()],
        )
        .route(
            "/api/pull",
            post(files::pull),
            [Doc::post("Download a model")
                .body::<FilesRequest>()
                .reply::<Progress>()
                .frames::<Progress>(Framing::NdJson)],
        )
        .route(
            "/api/delete",
            delete(files::delete),
            [Doc::delete("Delete a model").body::<FilesRequest>()],
        )
        .route(
            "/api/copy",
            post(files::copy),
            [Doc::post("Give a model a second name").body::<Copy>()],
        )
        .route(
            "/api/create",
            post(files::create),
            [Doc::post("Make a model of another")
                .body::<CreateRequest>()
                .reply::<Progress>()
                .frames::<Progress>(Framing::NdJson)],
        )
        .untold("/api/push", post(async || refuse(&refused::push())))
        .untold(
            "/api/blobs/{digest}",
            any(async || refuse(&refused::blobs())),
        )
}

fn refuse(error: &Error) -> Response {
    respond(Dialect::Ollama.error_reply(error))
}
