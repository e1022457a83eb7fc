//! All routes and what stands before them.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    middleware,
    response::Response,
    routing::get,
};
use macmlx_inference::{Backend, Catalog, ModelFiles};
use macmlx_protocol::Error;

use crate::{
    dialect, guard,
    keep_alive::Lifetimes,
    options::Options,
    replay::Replay,
    responses::{Limits, Store},
    routes::{anthropic, models, ollama, openai, responses, status},
};

/// What handlers share.
pub(crate) struct App {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) files: Arc<dyn ModelFiles>,
    pub(crate) lifetimes: Arc<Lifetimes>,
    pub(crate) options: Options,
    pub(crate) responses: Arc<Store>,
    /// A key has been asked for.
    pub(crate) is_closed: AtomicBool,
}

impl fmt::Debug for App {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("App")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The whole router, for a listener or an in-process door.
///
/// `control` holds routes that protect themselves (`/x`, the UI's files) and has no fallback; it
/// gets the host check, request ids, the body limit and JSON errors for unknown routes and wrong
/// methods, but neither API keys nor CORS.
pub fn router(
    backend: Arc<dyn Backend>,
    catalog: Arc<dyn Catalog>,
    files: Arc<dyn ModelFiles>,
    control: Router,
    options: Options,
) -> Router {
    let body_limit = DefaultBodyLimit::max(options.body_limit_bytes);
    let cors = guard::cors(&options);
    let backend: Arc<dyn Backend> = Arc::new(Replay::new(backend));
    let app = Arc::new(App {
        lifetimes: Arc::new(Lifetimes::new(&backend)),
        backend,
        catalog,
        files,
        is_closed: AtomicBool::new(options.asks_for_key()),
        options,
        responses: Arc::new(Store::new(Limits::default())),
    });
    let clients = Router::new()
        .merge(with_and_without_v1(openai::routes()))
        .merge(with_and_without_v1(responses::routes()))
        .merge(with_and_without_v1(anthropic::routes()))
        .nest("/anthropic", with_and_without_v1(anthropic::own_routes()))
        .merge(ollama::routes())
        .merge(models::lm_studio_routes())
        .layer(middleware::from_fn_with_state(
            Arc::clone(&app),
            guard::api_key,
        ))
        .merge(with_and_without_v1(
            Router::new().route("/health", get(status::health)),
        ))
        .route("/", get(status::root))
        .route("/api/hello", get(status::health))
        .route("/v1", get(status::about))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&app),
            guard::origin,
        ))
        .layer(cors);
    control
        .merge(clients.with_state(Arc::clone(&app)))
        .fallback(no_route)
        .layer(body_limit)
        .layer(middleware::from_fn_with_state(app, guard::host))
        .layer(middleware::from_fn(guard::outermost))
}

/// Clients are configured with a base URL that may or may not end in `/v1`, and append theirs.
fn with_and_without_v1(routes: Router<Arc<App>>) -> Router<Arc<App>> {
    Router::new()
        .nest("/v1/v1", routes.clone())
        .nest("/v1", routes.clone())
        .merge(routes)
}

pub(crate) async fn no_route(request: Request) -> Response {
    let error = Error::NoRoute {
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
    };
    dialect::refuse(dialect::of(&request), &error)
}
