//! Downloads of models: start, watch, pause, resume, cancel.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use macmlx_store::{
    downloads::{self, Change, CommandError, Downloads, Job},
    hub::{Code, Error},
};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use crate::{
    Problem,
    body::Body,
    events::{Event, Events},
    reply::ErrorBody,
};

/// `/x/downloads`.
pub fn routes() -> OpenApiRouter<Downloads> {
    OpenApiRouter::new()
        .routes(routes!(list_downloads, start_download))
        .routes(routes!(get_download, cancel_download))
        .routes(routes!(pause_download))
        .routes(routes!(resume_download))
}

/// Tells watchers of each change, and that models changed when one is there; until `downloads` end.
pub async fn announce(downloads: Downloads, events: Arc<Events>) {
    let mut changes = downloads.subscribe();
    drop(downloads);
    loop {
        match changes.recv().await {
            Ok(Change::Job(job)) => {
                let is_done = job.state == downloads::State::Done;
                events.publish(Event::Download { job });
                if is_done {
                    events.publish(Event::ModelsChanged);
                }
            }
            Ok(Change::Removed(id)) => {
                events.publish(Event::DownloadRemoved { id: id.to_string() });
            }
            Err(RecvError::Lagged(_)) => events.publish(Event::Lagged),
            Err(RecvError::Closed) => return,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DownloadList)]
struct List {
    /// Oldest first.
    jobs: Vec<Job>,
}

/// What to download.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = DownloadRequest)]
struct Wanted {
    /// `owner/name`, a bare name of mlx-community or a link.
    model: String,
    /// A branch, a tag or a commit; none is the main branch.
    revision: Option<String>,
}

/// List the downloads of this process and those that earlier ones left.
#[utoipa::path(get, path = "/x/downloads", responses((status = 200, body = List)))]
async fn list_downloads(State(downloads): State<Downloads>) -> Json<List> {
    Json(List {
        jobs: downloads.list(),
    })
}

/// Download a model, or go on with one that was begun.
#[utoipa::path(
    post,
    path = "/x/downloads",
    request_body = Wanted,
    responses(
        (status = 201, body = Job),
        (status = 200, description = "It was begun before", body = Job),
        (status = 409, description = "It is here, or another process downloads it", body = ErrorBody)
    )
)]
async fn start_download(
    State(downloads): State<Downloads>,
    Body(wanted): Body<Wanted>,
) -> Result<(StatusCode, Json<Job>), Problem> {
    let reference = match &wanted.revision {
        Some(revision) => format!("{}@{revision}", wanted.model),
        None => wanted.model,
    };
    let started = downloads
        .start(&reference)
        .await
        .map_err(|error| problem(&error))?;
    let status = if started.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(started.job)))
}

/// Look at one download.
#[utoipa::path(
    get,
    path = "/x/downloads/{id}",
    params(("id" = String, Path)),
    responses((status = 200, body = Job), (status = 404, body = ErrorBody))
)]
async fn get_download(
    State(downloads): State<Downloads>,
    Path(id): Path<String>,
) -> Result<Json<Job>, Problem> {
    let id = parse(&id)?;
    let job = downloads.job(id);
    job.map(Json)
        .ok_or_else(|| CommandError::Unknown(id).into())
}

/// Stop a download for now; what is here is kept.
#[utoipa::path(
    post,
    path = "/x/downloads/{id}/pause",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Job),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)
    )
)]
async fn pause_download(
    State(downloads): State<Downloads>,
    Path(id): Path<String>,
) -> Result<Json<Job>, Problem> {
    Ok(Json(downloads.pause(parse(&id)?).await?))
}

/// Go on with a download that is paused or failed.
#[utoipa::path(
    post,
    path = "/x/downloads/{id}/resume",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Job),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)
    )
)]
async fn resume_download(
    State(downloads): State<Downloads>,
    Path(id): Path<String>,
) -> Result<Json<Job>, Problem> {
    Ok(Json(downloads.resume(parse(&id)?).await?))
}

/// End a download and remove what is here of it, or take a finished one off the list.
#[utoipa::path(
    delete,
    path = "/x/downloads/{id}",
    params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
async fn cancel_download(
    State(downloads): State<Downloads>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    downloads.cancel(parse(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn parse(id: &str) -> Result<Uuid, Problem> {
    id.parse().map_err(|_| unknown(id))
}

fn unknown(id: impl std::fmt::Display) -> Problem {
    Problem::not_found("download_not_found", format!("there is no download {id}"))
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        match &error {
            CommandError::Unknown(id) => unknown(id),
            CommandError::State { .. } => Self::conflict("wrong_state", error.to_string()),
            CommandError::Hub(error) => problem(error),
        }
    }
}

/// What an error of the hub or of a download is for the caller of a route.
pub(crate) fn problem(error: &Error) -> Problem {
    let message = error.to_string();
    match error {
        Error::Name(_) => return Problem::invalid_param("model", message),
        Error::Endpoint { .. } => return Problem::conflict("invalid_endpoint", message),
        _ => {}
    }
    match error.code() {
        Code::Exists => Problem::conflict("exists", message),
        Code::Busy => Problem::conflict("busy", message),
        Code::Gated => Problem::conflict("gated", message),
        Code::Unauthorized => Problem::conflict("unauthorized", message),
        Code::NotFound => Problem::not_found("hub_model_not_found", message),
        Code::NoWeights => Problem::conflict("no_weights", message),
        Code::RateLimited => Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message),
        Code::Offline => Problem::new(StatusCode::BAD_GATEWAY, "offline", message),
        Code::DiskFull => Problem::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", message),
        Code::Corrupt => Problem::new(StatusCode::BAD_GATEWAY, "corrupt", message),
        Code::Failed => Problem::failed("failed", message),
    }
}
