//! The one handler behind every generating endpoint.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use macmlx_inference::{GenerationEvent, InferenceError, KeepAlive, ModelTask};
use macmlx_protocol::{
    Context, Endpoint, Error, StreamEncoder, Translation, lm_studio::Describing,
};
use uuid::Uuid;

use crate::{
    choice::choose,
    closing::Closing,
    exchange::{receive, respond},
    live::Live,
    router::App,
    running::{Starting, start},
};

const FINGERPRINT: &str = concat!("macmlx-", env!("CARGO_PKG_VERSION"));

/// Answers one request, whatever its dialect.
pub(crate) async fn generate<E: Endpoint>(
    State(app): State<Arc<App>>,
    request: Request,
) -> Response {
    match answer::<E>(&app, request).await {
        Ok(response) => response,
        Err(error) => respond(E::DIALECT.error_reply(&error)),
    }
}

async fn answer<E: Endpoint>(app: &App, request: Request) -> Result<Response, Error> {
    let closing = Closing::of(request.extensions());
    let received = receive(request, app.options.body_limit_bytes).await?;
    let request = E::parse(received.body())?;
    drop(received);
    let wants_stream = E::wants_stream(&request);
    let keep_alive = E::keep_alive(&request);
    let translation = E::translate(request, context())?;
    run(app, translation, keep_alive, wants_stream, closing).await
}

/// As [`generate`], where the answer tells of its model.
pub(crate) async fn generate_described<E: Endpoint>(
    State(app): State<Arc<App>>,
    request: Request,
) -> Response
where
    E::Encoder: Describing,
{
    match answer_describing::<E>(&app, request).await {
        Ok(response) => response,
        Err(error) => respond(E::DIALECT.error_reply(&error)),
    }
}

async fn answer_describing<E: Endpoint>(app: &App, request: Request) -> Result<Response, Error>
where
    E::Encoder: Describing,
{
    let closing = Closing::of(request.extensions());
    let received = receive(request, app.options.body_limit_bytes).await?;
    let request = E::parse(received.body())?;
    drop(received);
    let wants_stream = E::wants_stream(&request);
    let keep_alive = E::keep_alive(&request);
    let mut translation = E::translate(request, context())?;
    if let Some(request) = translation.requests.first() {
        let card = choose(&app.catalog, &request.model, ModelTask::Generate).await?;
        translation.encoder.describe(&card);
    }
    run(app, translation, keep_alive, wants_stream, closing).await
}

/// Has the model that answers stay as the request wishes, once it is in memory.
fn keep_by(app: &App, starting: Starting, keep_alive: Option<KeepAlive>) -> Starting {
    let Some(keep_alive) = keep_alive else {
        return starting;
    };
    let backend = Arc::clone(&app.backend);
    async move {
        Ok(starting.await?.inspect(move |event| {
            if let GenerationEvent::Started { model, .. } = event {
                backend.keep(model, keep_alive);
            }
        }))
    }
    .boxed()
}

/// Has a translated request generated, and answers it; the model stays as `keep_alive` wishes.
pub(crate) async fn run<E: StreamEncoder>(
    app: &App,
    translation: Translation<E>,
    keep_alive: Option<KeepAlive>,
    wants_stream: bool,
    closing: Closing,
) -> Result<Response, Error> {
    let Translation { requests, encoder } = translation;
    let starting = keep_by(app, start(app, requests), keep_alive);
    deliver(app, starting, encoder, wants_stream, closing).await
}

/// Answers with what has been started.
async fn deliver<E: StreamEncoder>(
    app: &App,
    starting: Starting,
    encoder: E,
    wants_stream: bool,
    closing: Closing,
) -> Result<Response, Error> {
    if wants_stream {
        stream(app, starting, encoder, closing).await
    } else {
        whole(starting, encoder, closing).await
    }
}

/// A request that is refused quickly gets a status code.
async fn stream<E: StreamEncoder>(
    app: &App,
    starting: Starting,
    encoder: E,
    closing: Closing,
) -> Result<Response, Error> {
    let mut live = Live::new(starting, encoder, app.options.keep_alive, closing);
    live.begin().await?;
    let mut response = live.into_body().into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, E::FRAMING.content_type()),
        (header::CACHE_CONTROL, "no-cache"),
        // Proxies must not collect frames.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

async fn whole<E: StreamEncoder>(
    starting: Starting,
    mut encoder: E,
    mut closing: Closing,
) -> Result<Response, Error> {
    let generation = async {
        let mut running = starting.await?;
        while let Some(event) = running.next().await {
            let (prompt, event) = event?;
            encoder.encode(prompt, event);
        }
        Ok::<_, InferenceError>(encoder.into_body())
    };
    tokio::select! {
        body = generation => Ok(Json(body?).into_response()),
        () = closing.closed() => Err(InferenceError::ShuttingDown.into()),
    }
}

/// Seconds since the Unix epoch.
pub(crate) fn now_unix() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.unwrap_or_default().as_secs()
}

pub(crate) fn context() -> Context {
    Context {
        id: Uuid::new_v4().simple().to_string(),
        created_unix: now_unix(),
        fingerprint: FINGERPRINT.to_owned(),
    }
}
