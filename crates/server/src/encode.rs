//! The one handler behind every route that turns texts into numbers.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use futures::future::BoxFuture;
use macmlx_inference::{
    Backend, EmbedRequest, Embeddings, InferenceError, Relevance, RerankRequest,
};
use macmlx_protocol::{Encoding, Error};

use crate::{
    closing::Closing,
    exchange::{read_body, respond},
    generate::context,
    router::App,
};

/// What a backend is asked, and how.
pub(crate) trait Question: Send {
    type Answer: Send + 'static;

    fn put(self, backend: &dyn Backend) -> BoxFuture<'_, Result<Self::Answer, InferenceError>>;
}

impl Question for EmbedRequest {
    type Answer = Embeddings;

    fn put(self, backend: &dyn Backend) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        backend.embed(self)
    }
}

impl Question for RerankRequest {
    type Answer = Relevance;

    fn put(self, backend: &dyn Backend) -> BoxFuture<'_, Result<Relevance, InferenceError>> {
        backend.rerank(self)
    }
}

/// Answers one request, whatever its dialect.
pub(crate) async fn encode<E>(State(app): State<Arc<App>>, request: Request) -> Response
where
    E: Encoding,
    E::Question: Question<Answer = E::Answer>,
{
    match answer::<E>(&app, request).await {
        Ok(response) => response,
        Err(error) => respond(E::DIALECT.error_reply(&error)),
    }
}

async fn answer<E>(app: &App, request: Request) -> Result<Response, Error>
where
    E: Encoding,
    E::Question: Question<Answer = E::Answer>,
{
    let closing = Closing::of(request.extensions());
    let body = read_body(request, app.options.body_limit_bytes).await?;
    let asked = E::parse(&body)?;
    drop(body);
    let answer = ask(app, asked.question()?, closing).await?;
    written(asked, answer).await
}

/// Waits for the answer, unless the server ends first. A client that goes away drops this, which
/// cancels the work.
pub(crate) async fn ask<Q: Question>(
    app: &App,
    question: Q,
    mut closing: Closing,
) -> Result<Q::Answer, InferenceError> {
    tokio::select! {
        answer = question.put(&*app.backend) => answer,
        () = closing.closed() => Err(InferenceError::ShuttingDown),
    }
}

/// The reply. Thousands of vectors take a while to write, which others need not wait for.
pub(crate) async fn written<E: Encoding>(asked: E, answer: E::Answer) -> Result<Response, Error> {
    let context = context();
    tokio::task::spawn_blocking(move || Json(asked.reply(answer, &context)).into_response())
        .await
        .map_err(|error| {
            tracing::error!(%error, "the reply could not be written");
            Error::Internal
        })
}
