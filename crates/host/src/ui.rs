//! The files of the UI, for browsers.

use axum::{
    Router,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

/// Nothing from elsewhere and nothing inline;
/// no page may frame this one.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; object-src 'none'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// The page that names the files may not be kept.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

#[cfg(feature = "ui")]
mod files {
    use std::borrow::Cow;

    use axum::{extract::Path, routing::get};

    use super::{HeaderValue, IntoResponse, NO_STORE, Response, Router, StatusCode, file};

    /// What is named after its own contents may be kept for ever.
    const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

    /// Debug builds read the folder at run time.
    #[derive(rust_embed::Embed)]
    #[folder = "../../ui/dist"]
    #[allow_missing = true]
    struct Built;

    pub(crate) fn routes() -> Router {
        Router::new()
            .route("/assets/{*path}", get(asset))
            .route("/favicon.svg", get(favicon))
    }

    pub(crate) fn front_page() -> Response {
        match read_built("index.html") {
            Some(page) => file("text/html; charset=utf-8", NO_STORE, page),
            None => super::missing_page(),
        }
    }

    async fn asset(Path(path): Path<String>) -> Response {
        let media_type = match path.rsplit_once('.').map(|(_, extension)| extension) {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("json") => "application/json",
            Some("woff2") => "font/woff2",
            Some("png") => "image/png",
            Some("wasm") => "application/wasm",
            Some(_) | None => "application/octet-stream",
        };
        // On disk, `..` would lead to files with another name than the one that is asked for.
        let is_plain = path.split('/').all(|part| part != "..");
        match read_built(&format!("assets/{path}")) {
            Some(contents) if is_plain => file(media_type, IMMUTABLE, contents),
            Some(_) | None => StatusCode::NOT_FOUND.into_response(),
        }
    }

    async fn favicon() -> Response {
        match read_built("favicon.svg") {
            Some(contents) => file("image/svg+xml", NO_STORE, contents),
            None => StatusCode::NOT_FOUND.into_response(),
        }
    }

    fn read_built(path: &str) -> Option<Cow<'static, [u8]>> {
        Some(Built::get(path)?.data)
    }
}

#[cfg(feature = "ui")]
pub(crate) use files::{front_page, routes};

/// A build without the UI has no files.
#[cfg(not(feature = "ui"))]
pub(crate) fn routes() -> Router {
    Router::new()
}

#[cfg(not(feature = "ui"))]
pub(crate) fn front_page() -> Response {
    missing_page()
}

/// Says how to get a UI.
fn missing_page() -> Response {
    const PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
        <title>macMLX</title><h1>macMLX is running</h1>\
        <p>This build comes without its UI. In the project, <code>cargo xtask run --headless</code> \
        builds the one with it; clients of the API need nothing more than this address.</p></html>\n";
    file("text/html; charset=utf-8", NO_STORE, PAGE)
}

fn file(
    media_type: &'static str,
    caching: HeaderValue,
    contents: impl Into<axum::body::Body>,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, caching),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    ];
    (StatusCode::OK, headers, contents.into()).into_response()
}
