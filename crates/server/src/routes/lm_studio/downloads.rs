//! `/api/v1/models/download` and the status of what it began.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    response::Response,
};
use macmlx_inference::InferenceError;
use macmlx_protocol::{
    Error,
    lm_studio::{
        downloads::{DownloadJob, DownloadRequest},
        error::{job_not_found, model_files_reply},
    },
};

use crate::{
    choice::find,
    closing::Closing,
    exchange::{read_body, respond},
    generate::now_unix,
    router::App,
};

pub(super) async fn start(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut closing = Closing::of(request.extensions());
    let request = match read(&app, request).await {
        Ok(request) => request,
        Err(error) => return super::reply(Err::<DownloadJob, _>(error)),
    };
    if is_here(&app, &request.model).await {
        return super::reply(Ok(DownloadJob::already_downloaded()));
    }
    let started = tokio::select! {
        started = app.files.start_download(request.model) => started,
        () = closing.closed() => Err(InferenceError::ShuttingDown.into()),
    };
    match started {
        Ok(Some(download)) => super::reply(Ok(DownloadJob::new(download, now_unix()))),
        Ok(None) => super::reply(Ok(DownloadJob::already_downloaded())),
        Err(error) => respond(model_files_reply(&error)),
    }
}

async fn read(app: &App, request: Request) -> Result<DownloadRequest, Error> {
    let body = read_body(request, app.options.body_limit_bytes).await?;
    DownloadRequest::parse(&body)
}

/// Whether a model here has exactly this id, wherever it came from.
async fn is_here(app: &App, model: &str) -> bool {
    let found = find(&app.catalog, model.to_owned()).await;
    found.is_ok_and(|card| card.id == model.trim())
}

pub(super) async fn status(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    match app.files.download(&id) {
        Some(download) => super::reply(Ok(DownloadJob::new(download, now_unix()))),
        None => respond(job_not_found(&id)),
    }
}
