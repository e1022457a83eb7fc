//! `/v1/models`, and the list of models as LM Studio has it.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    response::Response,
    routing::get,
};
use futures::future::join_all;
use macmlx_inference::{Catalog, ModelCard};
use macmlx_protocol::{
    Dialect, Error, openai,
    openai::models::{LmStudioList, LmStudioModel},
};

use super::{anthropic, traits};
use crate::{
    api::{Api, Doc},
    choice::{ask, find},
    dialect,
    exchange::answer,
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
            .map(|cards| openai::models::list(&cards))
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

/// LM Studio's own routes: some editors read there what a model can do.
pub(crate) fn lm_studio_routes() -> Api {
    Api::default()
        .route(
            "/api/v0/models",
            get(lm_studio_list),
            [Doc::get("List the local models and what they can do").reply::<LmStudioList>()],
        )
        .route(
            "/api/v0/models/{*id}",
            get(lm_studio_one),
            [Doc::get("Describe a model").reply::<LmStudioModel>()],
        )
}

async fn lm_studio_list(State(app): State<Arc<App>>) -> Response {
    answer(Dialect::OpenAi, lm_studio_models(&app).await)
}

async fn lm_studio_models(app: &App) -> Result<serde_json::Value, Error> {
    let cards = ask(&app.catalog, Catalog::list).await?;
    let models = join_all(cards.iter().map(|card| lm_studio_model(app, card))).await;
    Ok(openai::models::lm_studio_list(models))
}

async fn lm_studio_one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    let model = match find(&app.catalog, id).await {
        Ok(card) => Ok(lm_studio_model(&app, &card).await.into_value()),
        Err(error) => Err(error.into()),
    };
    answer(Dialect::OpenAi, model)
}

async fn lm_studio_model(app: &App, card: &ModelCard) -> LmStudioModel {
    let traits = traits(app, card).await;
    let is_loaded = app.backend.loaded().iter().any(|model| model.id == card.id);
    LmStudioModel::new(card, &traits, is_loaded)
}
