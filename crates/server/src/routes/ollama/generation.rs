//! `/api/chat` and `/api/generate`, which may also only load or unload their model.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use macmlx_protocol::{
    Error,
    ollama::generation::{Generating, Residency},
};

use super::refuse;
use crate::{
    choice::find,
    closing::Closing,
    exchange::receive,
    generate::{context, run},
    router::App,
};

pub(in crate::routes) async fn answer<E: Generating>(
    State(app): State<Arc<App>>,
    request: Request,
) -> Response {
    respond::<E>(&app, request)
        .await
        .unwrap_or_else(|error| refuse(&error))
}

async fn respond<E: Generating>(app: &App, request: Request) -> Result<Response, Error> {
    let closing = Closing::of(request.extensions());
    let received = receive(request, app.options.body_limit_bytes).await?;
    let request = E::parse(received.body())?;
    drop(received);
    if let Some(residency) = E::residency(&request) {
        let id = settle(app, &residency).await?;
        let reply = E::residency_reply(&residency, id, context().created_unix);
        return Ok(Json(reply).into_response());
    }
    let wants_stream = E::wants_stream(&request);
    let keep_alive = E::keep_alive(&request);
    let translation = E::translate(request, context())?;
    run(app, translation, keep_alive, wants_stream, closing).await
}

/// Loads or unloads a model and returns its id. The reply is one object also where a stream is asked
/// for, as Ollama has it.
pub(super) async fn settle(app: &App, residency: &Residency) -> Result<String, Error> {
    let card = find(&app.catalog, residency.model.clone()).await?;
    if residency.is_unload() {
        app.backend.unload(card.id.clone()).await?;
    } else {
        app.backend.load(Arc::clone(&card)).await?;
        if let Some(keep_alive) = residency.keep_alive {
            app.backend.keep(&card.id, keep_alive);
        }
    }
    Ok(card.id.clone())
}
