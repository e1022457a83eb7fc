//! `/v1/tokenize`, `/v1/detokenize` and `/apply-template`.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use macmlx_protocol::{Dialect, Error, openai::tokenize as wire};
use serde_json::Value;

use crate::{
    choice::{choose_default, choose_tokenizer},
    exchange::{answer, read_body},
    router::App,
};

pub(crate) async fn tokenize(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(Dialect::OpenAi, tokens(&app, request).await)
}

async fn tokens(app: &App, request: Request) -> Result<Value, Error> {
    let body = read_body(request, app.options.body_limit_bytes).await?;
    let request = wire::request(&body)?;
    let model = choose_tokenizer(&app.catalog, &request.model).await?;
    let context_length = model.context_length;
    let tokens = app.backend.tokenize(model, request).await?;
    Ok(wire::reply(tokens, context_length))
}

pub(crate) async fn apply_template(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(Dialect::OpenAi, prompt(&app, request).await)
}

/// The prompt of a conversation, as the text of the tokens that the model would read.
async fn prompt(app: &App, request: Request) -> Result<Value, Error> {
    let body = read_body(request, app.options.body_limit_bytes).await?;
    let (name, request) = wire::apply_template_request(&body)?;
    let model = match name {
        Some(name) => choose_tokenizer(&app.catalog, &name).await?,
        None => choose_default(&app.catalog).await?,
    };
    let tokens = app.backend.tokenize(Arc::clone(&model), request).await?;
    let text = app.backend.detokenize(model, tokens).await?;
    Ok(wire::detokenize_reply(text))
}

pub(crate) async fn detokenize(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(Dialect::OpenAi, text(&app, request).await)
}

async fn text(app: &App, request: Request) -> Result<Value, Error> {
    let body = read_body(request, app.options.body_limit_bytes).await?;
    let request = wire::detokenize_request(&body)?;
    let model = choose_tokenizer(&app.catalog, &request.model).await?;
    let text = app.backend.detokenize(model, request.tokens).await?;
    Ok(wire::detokenize_reply(text))
}
