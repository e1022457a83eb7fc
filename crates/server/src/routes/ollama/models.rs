//! `/api/tags`, `/api/show`, `/api/ps` and `/api/version`.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use futures::future::join_all;
use macmlx_inference::{Catalog, InferenceError, LoadedModel, ModelCard, ModelTask, ModelTraits};
use macmlx_protocol::{
    Error,
    ollama::{
        models::{self, Processes, Running, Tags, Version},
        show,
    },
};

use super::refuse;
use crate::{choice::ask, exchange::read_body, generate::context, router::App, routes::traits};

/// Macs share their memory between processor and GPU.
const IS_ON_GPU: bool = cfg!(all(target_os = "macos", target_arch = "aarch64"));

pub(super) async fn version() -> Json<Version> {
    Json(Version::SPOKEN)
}

pub(super) async fn tags(State(app): State<Arc<App>>) -> Response {
    answer::<Tags>(list_tags(&app).await)
}

async fn list_tags(app: &App) -> Result<Tags, Error> {
    let cards = ask(&app.catalog, Catalog::list).await?;
    let models = cards.into_iter().map(async |card| {
        let traits = traits(app, &card).await;
        (card, traits)
    });
    Ok(models::tags(join_all(models).await))
}

pub(super) async fn show(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(show_model(&app, request).await)
}

async fn show_model(app: &App, request: Request) -> Result<show::Reply, Error> {
    let body = read_body(request, app.options.body_limit_bytes).await?;
    let reference = show::Request::model(&body)?;
    let (card, description) = ask(&app.catalog, move |catalog| {
        let card = catalog.find(&reference)?;
        let description = catalog.describe(&card);
        Ok::<_, InferenceError>((card, description))
    })
    .await??;
    let traits = match card.task {
        ModelTask::Generate => app.backend.traits(Arc::clone(&card)).await?,
        ModelTask::Embed | ModelTask::Rerank => ModelTraits::default(),
    };
    Ok(show::reply(&card, &description, &traits))
}

pub(super) async fn processes(State(app): State<Arc<App>>) -> Response {
    answer::<Processes>(list_running(&app).await)
}

async fn list_running(app: &App) -> Result<Processes, Error> {
    let loaded = app.backend.loaded();
    let loaded = ask(&app.catalog, move |catalog| {
        let with_card = loaded.into_iter().map(|loaded| {
            let card = catalog.find(&loaded.id);
            let card = card.map_or_else(|_| without_files(&loaded), |card| (*card).clone());
            (card, loaded)
        });
        with_card.collect::<Vec<_>>()
    })
    .await?;
    let running = loaded
        .into_iter()
        .map(|(card, loaded)| Running {
            loaded,
            card,
            is_on_gpu: IS_ON_GPU,
        })
        .collect();
    Ok(models::processes(running, context().created_unix))
}

/// Makes the card of a model in memory whose files have been removed.
fn without_files(loaded: &LoadedModel) -> ModelCard {
    ModelCard {
        id: loaded.id.clone(),
        path: std::path::PathBuf::new(),
        model_type: String::new(),
        task: ModelTask::Generate,
        context_length: None,
        size_bytes: loaded.memory_bytes,
        quantization: None,
        parameters: None,
        modified_unix: 0,
        digest: String::new(),
        modelfile: None,
    }
}

fn answer<T: serde::Serialize>(result: Result<T, Error>) -> Response {
    match result {
        Ok(reply) => Json(reply).into_response(),
        Err(error) => refuse(&error),
    }
}
