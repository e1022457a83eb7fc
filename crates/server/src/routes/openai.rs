//! OpenAI's routes.

use axum::{
    extract::Request,
    response::Response,
    routing::{get, post},
};
use macmlx_protocol::{
    Dialect, Error,
    openai::{
        chat_completions::ChatCompletions,
        completions::Completions,
        models::{Model, ModelList},
        tokenize::{DetokenizeRequest, Detokenized, TokenizeBody, Tokenized},
    },
};

use super::{models, tokenize};
use crate::{
    api::{Api, Doc},
    exchange::answer,
    generate::generate,
};

/// Routes, without `/v1`.
pub(crate) fn routes() -> Api {
    Api::default()
        .route(
            "/chat/completions",
            post(generate::<ChatCompletions>),
            [Doc::generating::<ChatCompletions>()],
        )
        // Some clients append the path to a URL that has it already.
        .untold(
            "/chat/completions/chat/completions",
            post(generate::<ChatCompletions>),
        )
        .route(
            "/completions",
            post(generate::<Completions>),
            [Doc::generating::<Completions>()],
        )
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
        .untold("/embeddings", post(unavailable))
        .untold("/rerank", post(unavailable))
        .untold("/reranking", post(unavailable))
}

/// A client that is told why does not take its base URL for wrong.
async fn unavailable(request: Request) -> Response {
    let path = request.uri().path();
    let reason = "models for embeddings and reranking are not available";
    answer(Dialect::OpenAi, Err(Error::unsupported(path, reason)))
}
