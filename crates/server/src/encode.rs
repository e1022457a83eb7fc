//! The one handler behind every route that turns texts into numbers.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use macmlx_inference::{InferenceError, KeepAlive, Question};
use macmlx_protocol::{Encoding, Error};

use crate::{
    choice::choose,
    closing::Closing,
    exchange::{receive, respond},
    generate::context,
    router::App,
};

/// Answers one request, whatever its dialect.
pub(crate) async fn encode<E: Encoding>(State(app): State<Arc<App>>, request: Request) -> Response {
    match answer::<E>(&app, request).await {
        Ok(response) => response,
        Err(error) => respond(E::DIALECT.error_reply(&error)),
    }
}

async fn answer<E: Encoding>(app: &App, request: Request) -> Result<Response, Error> {
    let closing = Closing::of(request.extensions());
    let received = receive(request, app.options.body_limit_bytes).await?;
    let asked = E::parse(received.body())?;
    drop(received);
    let answer = ask(app, asked.question()?, asked.keep_alive(), closing).await?;
    write_reply(asked, answer).await
}

/// Waits for the answer, unless the server ends first; then the model stays as `keep_alive` wishes.
/// A client that goes away drops this, which cancels the work.
pub(crate) async fn ask<Q: Question>(
    app: &App,
    question: Q,
    keep_alive: Option<KeepAlive>,
    mut closing: Closing,
) -> Result<Q::Answer, InferenceError> {
    let answer = async {
        let model = choose(&app.catalog, question.model(), Q::TASK).await?;
        let id = model.id.clone();
        let answer = question.put(&*app.backend, model).await?;
        if let Some(keep_alive) = keep_alive {
            app.backend.keep(&id, keep_alive);
        }
        Ok(answer)
    };
    tokio::select! {
        answer = answer => answer,
        () = closing.closed() => Err(InferenceError::ShuttingDown),
    }
}

/// The reply. Thousands of vectors take a while to write, which others need not wait for.
pub(crate) async fn write_reply<E: Encoding>(
    asked: E,
    answer: <E::Question as Question>::Answer,
) -> Result<Response, Error> {
    let context = context();
    tokio::task::spawn_blocking(move || Json(asked.reply(answer, &context)).into_response())
        .await
        .map_err(|error| {
            tracing::error!(%error, "the reply could not be written");
            Error::Internal
        })
}
