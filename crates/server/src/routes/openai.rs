//! OpenAI's routes.

use axum::routing::{get, post};
use macmlx_protocol::openai::{
    models::{DeletedModel, Model, ModelList},
    tokenize::{ApplyTemplateBody, DetokenizeRequest, Detokenized, TokenizeBody, Tokenized},
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
            get(models::one).delete(models::delete),
            [
                Doc::get("Describe a model").reply::<Model>(),
                Doc::delete("Delete a model; needs the control token").reply::<DeletedModel>(),
            ],
        )
        .route(
            "/tokenize",
            post(tokenize::tokenize),
            [Doc::post("Turn a text or a conversation into tokens")
                .body::<TokenizeBody>()
                .reply::<Tokenized>()],
        )
        .route(
            "/apply-template",
            post(tokenize::apply_template),
            [Doc::post("Show the prompt that a conversation becomes")
                .body::<ApplyTemplateBody>()
                .reply::<Detokenized>()],
        )
        .route(
            "/detokenize",
            post(tokenize::detokenize),
            [Doc::post("Turn tokens into text")
                .body::<DetokenizeRequest>()
                .reply::<Detokenized>()],
        )
}
