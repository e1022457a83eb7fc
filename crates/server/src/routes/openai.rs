//! OpenAI's routes.

use std::sync::Arc;

use axum::{
    Router,
    routing::{get, post},
};
use macmlx_protocol::openai::{chat_completions::ChatCompletions, completions::Completions};

use super::{models, tokenize};
use crate::{generate::generate, router::App};

/// Routes, without `/v1`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/chat/completions", post(generate::<ChatCompletions>))
        // Some clients append the path to a URL that has it already.
        .route(
            "/chat/completions/chat/completions",
            post(generate::<ChatCompletions>),
        )
        .route("/completions", post(generate::<Completions>))
        .route("/models", get(models::list))
        .route("/models/{*id}", get(models::one))
        .route("/tokenize", post(tokenize::tokenize))
        .route("/detokenize", post(tokenize::detokenize))
}
