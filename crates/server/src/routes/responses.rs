//! OpenAI's Responses API.

use std::sync::Arc;

use axum::Router;

use crate::router::App;

/// Routes, without `/v1`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
}
