//! Anthropic's routes.

use std::sync::Arc;

use axum::Router;

use crate::router::App;

/// Routes that no other dialect has, without `/v1`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
}

/// All routes, for clients that are given `/anthropic` as their base, without `/v1`.
pub(crate) fn own_routes() -> Router<Arc<App>> {
    routes()
}
