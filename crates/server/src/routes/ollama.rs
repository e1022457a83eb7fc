//! Ollama's routes.

use std::sync::Arc;

use axum::Router;

use crate::router::App;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
}
