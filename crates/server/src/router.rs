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
};
use macmlx_inference::{Backend, Catalog, ModelFiles};
use macmlx_protocol::{Dialect, Error};
use utoipa::openapi::OpenApi;

use crate::{
    api::Api,
    content_encoding, dialect, guard,
    options::Options,
    replay::Replay,
    responses::{Chats, Limits, Store},
    route_path::as_called,
    routes::{anthropic, endpoints, lm_studio, ollama, openai, responses, status},
};

/// What handlers share.
pub(crate) struct App {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) files: Arc<dyn ModelFiles>,
    /// What all routes take and give.
    pub(crate) document: OpenApi,
    pub(crate) options: Options,
    pub(crate) responses: Arc<Store>,
    pub(crate) chats: Arc<Chats>,
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
/// gets a stricter host check, request ids, the body limit and JSON errors for unknown routes and wrong
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
    let (closed, document_of_closed) = for_clients().into_parts();
    let (open, document) = for_everyone().into_parts();
    let app = Arc::new(App {
        document: document.merge_from(document_of_closed),
        backend,
        catalog,
        files,
        is_closed: AtomicBool::new(options.asks_for_key()),
        options,
        responses: Arc::new(Store::new(Limits::default())),
        chats: Arc::new(Chats::new(Limits::default())),
    });
    let clients = closed
        .layer(middleware::from_fn_with_state(
            Arc::clone(&app),
            guard::api_key,
        ))
        .merge(open)
        .layer(middleware::from_fn_with_state(
            Arc::clone(&app),
            guard::origin,
        ))
        .layer(cors);
    control
        .layer(middleware::from_fn_with_state(
            Arc::clone(&app),
            guard::own_host,
        ))
        .merge(clients.with_state(Arc::clone(&app)))
        .fallback(no_route)
        .layer(body_limit)
        .layer(middleware::from_fn_with_state(
            Arc::clone(&app),
            content_encoding::decode,
        ))
        .layer(middleware::from_fn_with_state(app, guard::host))
        .layer(middleware::from_fn(guard::outermost))
}

/// Routes that ask for a key where there is one.
fn for_clients() -> Api {
    endpoints::under_v1()
        .merge(openai::routes())
        .merge(responses::routes())
        .merge(anthropic::routes())
        .with_and_without_v1()
        .merge(
            endpoints::under_v1_of(Dialect::Anthropic)
                .merge(anthropic::own_routes())
                .with_and_without_v1()
                .nest("/anthropic"),
        )
        .merge(endpoints::beside_v1())
        .merge(ollama::routes())
        .merge(lm_studio::routes())
}

fn for_everyone() -> Api {
    status::health_routes()
        .with_and_without_v1()
        .merge(status::routes())
}

pub(crate) async fn no_route(request: Request) -> Response {
    let error = Error::NoRoute {
        method: request.method().to_string(),
        path: as_called(&request).to_owned(),
    };
    dialect::refuse(dialect::words(&request), &error)
}
