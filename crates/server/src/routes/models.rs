//! `/v1/models`.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    http::HeaderMap,
    response::Response,
};
use macmlx_inference::Catalog;
use macmlx_protocol::{Dialect, Error, openai};

use super::anthropic;
use crate::{
    choice::{ask, find},
    dialect,
    exchange::{answer, respond},
    guard::expect_owner,
    router::App,
};

pub(crate) async fn list(State(app): State<Arc<App>>, request: Request) -> Response {
    if dialect::of(&request) == Dialect::Anthropic {
        return anthropic::list(&app, request.uri()).await;
    }
    let cards = ask(&app.catalog, Catalog::list).await;
    answer(
        Dialect::OpenAi,
        cards
            .map(|cards| openai::models::list(&cards, request.uri().query()))
            .map_err(Error::from),
    )
}

/// Ids hold a slash, as it is or percent-encoded.
pub(crate) async fn one(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    if dialect::of(&request) == Dialect::Anthropic {
        return anthropic::one(&app, id).await;
    }
    let card = find(&app.catalog, id).await;
    answer(
        Dialect::OpenAi,
        card.map(|card| openai::models::model(&card))
            .map_err(Error::from),
    )
}

/// Deletes a model's files, for the owner alone. Only a whole name says which.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    if let Err(error) = expect_owner(&app, &headers) {
        return respond(Dialect::OpenAi.error_reply(&error));
    }
    match app.files.delete(id).await {
        Ok(id) => answer(Dialect::OpenAi, Ok(openai::models::deleted(id))),
        Err(error) => respond(openai::error::model_files_reply(&error)),
    }
}
