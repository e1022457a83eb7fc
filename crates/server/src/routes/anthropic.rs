//! Anthropic's routes.

use std::sync::Arc;

use axum::{
    extract::{Path, Query, Request, State},
    http::Uri,
    response::Response,
    routing::{get, post},
};
use macmlx_inference::{Catalog, ModelTask};
use macmlx_protocol::{
    Dialect, Error,
    anthropic::{
        count_tokens::{self, TokenCount},
        messages,
        models::{self, Model, ModelList, Page},
    },
    json,
};
use serde_json::Value;

use crate::{
    api::{Api, Doc},
    choice::{ask, choose, find},
    exchange::{answer, read_body},
    router::App,
};

/// Routes that no other dialect has, beside the endpoint, without `/v1`.
pub(crate) fn routes() -> Api {
    Api::default().route(
        "/messages/count_tokens",
        post(count),
        [Doc::post("Count the tokens of a prompt")
            .body::<messages::Request>()
            .reply::<TokenCount>()],
    )
}

/// All routes beside the endpoint, for clients that are given `/anthropic` as their base, without `/v1`.
pub(crate) fn own_routes() -> Api {
    routes()
        .route(
            "/models",
            get(own_list),
            [Doc::get("List the local models")
                .query("limit", "Models in a page, 1 to 1000.")
                .query("after_id", "The page begins after this model.")
                .query("before_id", "The page ends before this model.")
                .reply::<ModelList>()],
        )
        .route(
            "/models/{*id}",
            get(own_one),
            [Doc::get("Describe a model").reply::<Model>()],
        )
}

async fn own_list(State(app): State<Arc<App>>, uri: Uri) -> Response {
    list(&app, &uri).await
}

async fn own_one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    one(&app, id).await
}

/// A page of the models, for `/v1/models` too, when a client of Anthropic's asks.
pub(super) async fn list(app: &App, uri: &Uri) -> Response {
    answer(Dialect::Anthropic, page(app, uri).await)
}

async fn page(app: &App, uri: &Uri) -> Result<Value, Error> {
    let Query(pairs) =
        Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(|_| Error::Invalid {
            param: None,
            message: "the query string cannot be read".into(),
        })?;
    let page = Page::from_query(&pairs)?;
    let mut cards = ask(&app.catalog, Catalog::list).await?;
    // There is nothing else to do with a model in this API.
    cards.retain(|card| card.task == ModelTask::Generate);
    Ok(json::value(&models::list(&cards, &page)?))
}

/// One model. Ids hold a slash, as it is or percent-encoded.
pub(super) async fn one(app: &App, id: String) -> Response {
    let card = find(&app.catalog, id).await;
    answer(
        Dialect::Anthropic,
        card.map(|card| json::value(&models::model(&card)))
            .map_err(Error::from),
    )
}

/// Nothing is generated, so nothing is waited for: clients ask dozens of times at once.
async fn count(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(Dialect::Anthropic, tokens(&app, request).await)
}

async fn tokens(app: &App, request: Request) -> Result<Value, Error> {
    let body = read_body(request, app.options.body_limit_bytes).await?;
    let request = count_tokens::request(&body)?;
    let model = choose(&app.catalog, &request.model, ModelTask::Generate).await?;
    let tokens = app.backend.tokenize(model, request).await?;
    Ok(json::value(&TokenCount {
        input_tokens: tokens.len() as u64,
    }))
}
