//! `/v1/tokenize` and `/v1/detokenize`.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use macmlx_protocol::{Dialect, Error, openai::tokenize as wire};
use serde_json::Value;

use crate::{
    choice::choose_tokenizer,
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
