//! LM Studio's routes, below `/api/v0` and `/api/v1`.

pub(crate) mod chat;
mod downloads;

use std::{sync::Arc, time::Instant};

use axum::{
    extract::{Path, Request, State},
    response::Response,
    routing::{get, post},
};
use futures::future::join_all;
use macmlx_inference::{Catalog, InferenceError, ModelCard};
use macmlx_protocol::{
    Dialect, Error, json,
    lm_studio::{
        downloads::{DownloadJob, DownloadRequest},
        models::{self, Keyed, KeyedList, Model, ModelList},
        residency::{LoadRequest, Loaded, Unload},
    },
};
use serde::Serialize;

use super::traits;
use crate::{
    api::{Api, Doc},
    choice::{ask, find},
    exchange::{answer, read_body},
    router::App,
};

/// The routes beside those of the table of endpoints.
pub(crate) fn routes() -> Api {
    Api::default()
        .route(
            "/api/v0/models",
            get(list),
            [Doc::get("List the local models and what they can do").reply::<ModelList>()],
        )
        .route(
            "/api/v0/models/{*id}",
            get(one),
            [Doc::get("Describe a model").reply::<Model>()],
        )
        .route(
            "/api/v1/models",
            get(keyed_list),
            [Doc::get("List the local models and how they are loaded").reply::<KeyedList>()],
        )
        .route(
            "/api/v1/models/load",
            post(load),
            [Doc::post("Load a model")
                .body::<LoadRequest>()
                .reply::<Loaded>()],
        )
        .route(
            "/api/v1/models/unload",
            post(unload),
            [Doc::post("Drop a model from memory")
                .body::<Unload>()
                .reply::<Unload>()],
        )
        .route(
            "/api/v1/models/download",
            post(downloads::start),
            [Doc::post("Download a model")
                .body::<DownloadRequest>()
                .reply::<DownloadJob>()],
        )
        .route(
            "/api/v1/models/download/status/{id}",
            get(downloads::status),
            [Doc::get("Look at a download").reply::<DownloadJob>()],
        )
}

async fn list(State(app): State<Arc<App>>) -> Response {
    let models = describe_all(&app, Model::new).await;
    answer(Dialect::OpenAi, models.map(models::list))
}

async fn keyed_list(State(app): State<Arc<App>>) -> Response {
    let models = describe_all(&app, Keyed::new).await;
    reply(models.map(models::keyed_list))
}

/// Every model, described in the words of one list.
async fn describe_all<T>(
    app: &App,
    describe: fn(&ModelCard, &macmlx_inference::ModelTraits, bool) -> T,
) -> Result<Vec<T>, Error> {
    let cards = ask(&app.catalog, Catalog::list).await?;
    let models = cards.iter().map(async |card| {
        let traits = traits(app, card).await;
        describe(card, &traits, is_loaded(app, &card.id))
    });
    Ok(join_all(models).await)
}

async fn one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    let model = match find(&app.catalog, id).await {
        Ok(card) => {
            let traits = traits(&app, &card).await;
            Ok(Model::new(&card, &traits, is_loaded(&app, &card.id)).into_value())
        }
        Err(error) => Err(error.into()),
    };
    answer(Dialect::OpenAi, model)
}

async fn load(State(app): State<Arc<App>>, request: Request) -> Response {
    reply(load_model(&app, request).await)
}

async fn load_model(app: &App, request: Request) -> Result<Loaded, Error> {
    let body = read_body(request, app.options.body_limit_bytes).await?;
    let request = LoadRequest::parse(&body)?;
    let card = find(&app.catalog, request.model.clone()).await?;
    let begun = Instant::now();
    app.backend.load(Arc::clone(&card)).await?;
    let load_time = begun.elapsed();
    if let Some(keep_alive) = request.keep_alive() {
        app.backend.keep(&card.id, keep_alive);
    }
    Ok(request.reply(&card, load_time))
}

async fn unload(State(app): State<Arc<App>>, request: Request) -> Response {
    reply(unload_model(&app, request).await)
}

async fn unload_model(app: &App, request: Request) -> Result<Unload, Error> {
    let body = read_body(request, app.options.body_limit_bytes).await?;
    let Unload { instance_id } = Unload::parse(&body)?;
    // Its files may be gone by now, and then its name is all there is.
    let (id, unknown) = match find(&app.catalog, instance_id.clone()).await {
        Ok(card) => (card.id.clone(), None),
        Err(error @ InferenceError::ModelNotFound { .. }) => (instance_id.clone(), Some(error)),
        Err(error) => return Err(error.into()),
    };
    if app.backend.unload(id.clone()).await? {
        return Ok(Unload { instance_id: id });
    }
    Err(match unknown {
        Some(error) => error.into(),
        None => Error::invalid(
            "instance_id",
            format!("the model `{instance_id}` is not loaded"),
        ),
    })
}

fn is_loaded(app: &App, id: &str) -> bool {
    app.backend.loaded().iter().any(|model| model.id == id)
}

/// An answer of `/api/v1`.
fn reply(result: Result<impl Serialize, Error>) -> Response {
    answer(Dialect::LmStudio, result.map(|reply| json::value(&reply)))
}
