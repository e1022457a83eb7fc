//! `/api/embed` and `/api/embeddings`, which may also only load or unload their model.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use macmlx_protocol::{Error, ollama::embedding::Embedding};

use super::{generation::settle, refuse};
use crate::{
    closing::Closing,
    encode::{ask, write_reply},
    exchange::receive,
    router::App,
};

pub(in crate::routes) async fn answer<E: Embedding>(
    State(app): State<Arc<App>>,
    request: Request,
) -> Response {
    respond::<E>(&app, request)
        .await
        .unwrap_or_else(|error| refuse(&error))
}

async fn respond<E: Embedding>(app: &App, request: Request) -> Result<Response, Error> {
    let closing = Closing::of(request.extensions());
    let received = receive(request, app.options.body_limit_bytes).await?;
    let asked = E::parse(received.body())?;
    drop(received);
    if let Some(residency) = asked.residency() {
        let id = settle(app, &residency).await?;
        return Ok(Json(E::residency_reply(id)).into_response());
    }
    let answer = ask(app, asked.question()?, asked.keep_alive(), closing).await?;
    write_reply(asked, answer).await
}
