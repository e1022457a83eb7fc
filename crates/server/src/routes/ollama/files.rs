//! `/api/pull`, `/api/delete`, `/api/copy` and `/api/create`.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream, stream::BoxStream};
use macmlx_inference::{InferenceError, ModelFilesError, PullProgress};
use macmlx_protocol::{
    Error, Frame, Framing, json,
    ollama::{
        create,
        error::{model_files_frame, model_files_reply},
        files,
    },
};

use super::refuse;
use crate::{
    choice::find,
    closing::Closing,
    exchange::{read_body, respond},
    router::App,
};

type Steps = BoxStream<'static, Result<PullProgress, ModelFilesError>>;

pub(super) async fn pull(State(app): State<Arc<App>>, request: Request) -> Response {
    let closing = Closing::of(request.extensions());
    match begin_pull(&app, request).await {
        Ok((steps, true)) => stream_steps(steps, closing),
        Ok((steps, false)) => whole(steps).await,
        Err(error) => refuse(&error),
    }
}

/// The steps of a pull, and whether they are to be told as they come.
async fn begin_pull(app: &App, request: Request) -> Result<(Steps, bool), Error> {
    let body = read_body(request, app.options.body_limit_bytes).await?;
    let request = files::Request::parse(&body)?;
    let steps = match request.repository() {
        Ok(repository) => app.files.pull(repository),
        Err(error) => match local(app, &request).await {
            Some(id) => {
                stream::iter([Ok(PullProgress::Listing), Ok(PullProgress::Done { id })]).boxed()
            }
            None => return Err(error),
        },
    };
    Ok((steps, request.wants_stream))
}

/// The model here that a name means which is no repository's. Clients pull what they are to use.
async fn local(app: &App, request: &files::Request) -> Option<String> {
    let found = find(&app.catalog, request.model.clone()).await;
    let id = found.ok().map(|card| card.id.clone());
    id.filter(|id| request.means(id))
}

fn stream_steps(steps: Steps, closing: Closing) -> Response {
    let lines = stream::unfold(Some((steps, closing)), |open| async {
        let (mut steps, mut closing) = open?;
        let step = tokio::select! {
            step = steps.next() => step?,
            () = closing.closed() => Err(InferenceError::ShuttingDown.into()),
        };
        let mut line = String::new();
        Some(match step {
            Ok(progress) => {
                let is_over = matches!(progress, PullProgress::Done { .. });
                let data = json::text(&files::Progress::from(progress));
                Framing::NdJson.write(&Frame::data(data), &mut line);
                (line, (!is_over).then_some((steps, closing)))
            }
            Err(error) => {
                tracing::warn!(%error, "a pull failed");
                let data = model_files_frame(&error).to_string();
                Framing::NdJson.write(&Frame::data(data), &mut line);
                (line, None)
            }
        })
    });
    let body = Body::from_stream(lines.map(Ok::<_, Infallible>));
    (
        [(header::CONTENT_TYPE, Framing::NdJson.content_type())],
        body,
    )
        .into_response()
}

async fn whole(mut steps: Steps) -> Response {
    while let Some(step) = steps.next().await {
        if let Err(error) = step {
            return respond(model_files_reply(&error));
        }
    }
    Json(files::Progress::success()).into_response()
}

pub(super) async fn delete(State(app): State<Arc<App>>, request: Request) -> Response {
    let body = read_body(request, app.options.body_limit_bytes).await;
    match body.and_then(|body| files::Request::parse(&body)) {
        Ok(request) => answer_change(app.files.delete(request.model).await),
        Err(error) => refuse(&error),
    }
}

pub(super) async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    match created(&app, request).await {
        Ok(response) => response,
        Err(error) => refuse(&error),
    }
}

/// Makes a model before the first step is told, which takes no longer than a copy: what goes wrong
/// has a status then.
async fn created(app: &App, request: Request) -> Result<Response, Error> {
    let body = read_body(request, app.options.body_limit_bytes).await?;
    let create::Request {
        mut model,
        wants_stream,
    } = create::Request::parse(&body)?;
    let parent = find(&app.catalog, model.modelfile.from).await?;
    model.modelfile.from = parent.id.clone();
    if let Err(error) = app.files.create(model).await {
        return Ok(respond(model_files_reply(&error)));
    }
    if !wants_stream {
        return Ok(Json(files::Progress::success()).into_response());
    }
    let mut lines = String::new();
    for step in create::STEPS {
        let data = json::text(&files::Progress::status(*step));
        Framing::NdJson.write(&Frame::data(data), &mut lines);
    }
    let content_type = Framing::NdJson.content_type();
    Ok(([(header::CONTENT_TYPE, content_type)], lines).into_response())
}

pub(super) async fn copy(State(app): State<Arc<App>>, request: Request) -> Response {
    let body = read_body(request, app.options.body_limit_bytes).await;
    match body.and_then(|body| files::Copy::parse(&body)) {
        Ok(copy) => answer_change(app.files.copy(copy.source, copy.destination).await),
        Err(error) => refuse(&error),
    }
}

/// Ollama says nothing where all went well.
fn answer_change<T>(result: Result<T, ModelFilesError>) -> Response {
    match result {
        Ok(_) => StatusCode::OK.into_response(),
        Err(error) => respond(model_files_reply(&error)),
    }
}
