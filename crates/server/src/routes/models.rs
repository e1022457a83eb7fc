//! `/v1/models`.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    response::Response,
};
use macmlx_inference::Catalog;
use macmlx_protocol::{Dialect, openai};

use super::ask_catalog;
use crate::{exchange::answer, router::App};

pub(crate) async fn list(State(app): State<Arc<App>>) -> Response {
    let cards = ask_catalog(&app.catalog, Catalog::list).await;
    answer(
        Dialect::OpenAi,
        cards.map(|cards| openai::models::list(&cards)),
    )
}

/// Ids hold a slash, as it is or percent-encoded.
pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    let card = ask_catalog(&app.catalog, move |catalog| catalog.resolve(&id)).await;
    answer(
        Dialect::OpenAi,
        card.and_then(|card| Ok(openai::models::model(&card?))),
    )
}
