//! OpenAI's routes.

use axum::routing::{get, post};
use macmlx_protocol::openai::{
    models::{Model, ModelList},
    tokenize::{DetokenizeRequest, Detokenized, TokenizeBody, Tokenized},
};

use super::{models, tokenize};
use crate::api::{Api, Doc};

/// Routes beside the endpoints, without `/v1`.
pub(crate) fn routes() -> Api {
    Api::default()
        .route(
            "/models",
            get(models::list),
            [Doc::get("List the local models").reply::<ModelList>()],
        )
        .route(
            "/models/{*id}",
            get(models::one),
            [Doc::get("Describe a model").reply::<Model>()],
        )
        .route(
            "/tokenize",
            post(tokenize::tokenize),
            [Doc::post("Turn a text or a conversation into tokens")
                .body::<TokenizeBody>()
                .reply::<Tokenized>()],
        )
        .route(
            "/detokenize",
            post(tokenize::detokenize),
            [Doc::post("Turn tokens into text")
                .body::<DetokenizeRequest>()
                .reply::<Detokenized>()],
        )
}
