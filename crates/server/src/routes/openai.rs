//! OpenAI's routes.

use axum::routing::{get, post};
use macmlx_protocol::openai::{
    chat_completions::ChatCompletions,
    completions::Completions,
    embeddings,
    models::{Model, ModelList},
    rerank,
    tokenize::{DetokenizeRequest, Detokenized, TokenizeBody, Tokenized},
};

use super::{models, tokenize};
use crate::{
    api::{Api, Doc},
    encode::encode,
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
        .route(
            "/embeddings",
            post(encode::<embeddings::Request>),
            [Doc::encoding::<embeddings::Request>()],
        )
        .route(
            "/rerank",
            post(encode::<rerank::Request>),
            [Doc::encoding::<rerank::Request>()],
        )
        // As llama.cpp has it too, and where Cohere's second API is.
        .untold("/reranking", post(encode::<rerank::Request>))
        .untold("/v2/rerank", post(encode::<rerank::Request>))
}
