//! Whether the server is there, what it is and what it takes.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde::Serialize;
use utoipa::{ToSchema, openapi::OpenApi};

use crate::{
    api::{Api, Doc},
    router::App,
};

/// A sign of life.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
}

/// What answers here.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct About {
    object: &'static str,
    name: &'static str,
    version: &'static str,
    openai_base_path: &'static str,
    health: &'static str,
    models: &'static str,
    document: &'static str,
}

/// Routes that ask for no key, without `/v1`.
pub(crate) fn health_routes() -> Api {
    Api::default().route(
        "/health",
        get(health),
        [Doc::get("Tell that the server is there")
            .reply::<Health>()
            .open()],
    )
}

/// Routes that ask for no key.
pub(crate) fn routes() -> Api {
    Api::default()
        .untold("/", get(root))
        .untold("/api/hello", get(health))
        .route(
            "/v1",
            get(about),
            [Doc::get("Tell what answers here").reply::<About>().open()],
        )
        .untold("/openapi.json", get(document))
}

async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Clients know Ollama by these words; people look for a page.
async fn root(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    match app.options.front_page {
        Some(page) if accepts_html(&headers) => page(),
        Some(_) | None => "Ollama is running".into_response(),
    }
}

/// Whether HTML is asked for by name, as only browsers do.
fn accepts_html(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let is_html = parts
                .next()
                .is_some_and(|media| media.eq_ignore_ascii_case("text/html"));
            let is_refused = parts.any(|parameter| {
                parameter
                    .strip_prefix("q=")
                    .and_then(|weight| weight.parse::<f32>().ok())
                    .is_some_and(|weight| weight <= 0.0)
            });
            is_html && !is_refused
        })
}

async fn about() -> Json<About> {
    Json(About {
        object: "api",
        name: "macMLX",
        version: env!("CARGO_PKG_VERSION"),
        openai_base_path: "/v1",
        health: "/health",
        models: "/v1/models",
        document: "/openapi.json",
    })
}

async fn document(State(app): State<Arc<App>>) -> Json<OpenApi> {
    Json(app.document.clone())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn browsers_ask_for_html_and_others_do_not() {
        for (accept, is_browser) in [
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                true,
            ),
            ("application/json, Text/HTML;q=0.5", true),
            ("*/*", false),
            ("text/html;q=0", false),
            ("text/plain", false),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(accepts_html(&headers), is_browser, "{accept}");
        }
        assert!(!accepts_html(&HeaderMap::new()));
    }
}
