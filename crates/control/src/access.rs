//! Who may control the server: clients that know the token, and no web page of another site.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use subtle::ConstantTimeEq;

use crate::Problem;

/// The token may also come here, for clients that keep `Authorization` to themselves.
const TOKEN_HEADER: &str = "x-control-token";

pub(crate) async fn check(State(token): State<Arc<str>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if !is_own_origin(headers) {
        return Problem::new(
            StatusCode::FORBIDDEN,
            "origin_not_allowed",
            "control routes answer to no other web site",
        )
        .into_response();
    }
    if !read_tokens(headers).any(|presented| is_equal(presented, &token)) {
        return Problem::new(
            StatusCode::UNAUTHORIZED,
            "invalid_control_token",
            "control routes need the token in the file control-token of the data folder, as `Authorization: Bearer`",
        )
        .into_response();
    }
    next.run(request).await
}

fn read_tokens(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    let own = headers
        .get(TOKEN_HEADER)
        .and_then(|value| value.to_str().ok());
    bearer.into_iter().chain(own)
}

/// Takes the same time wherever the difference is.
fn is_equal(presented: &str, token: &str) -> bool {
    !token.is_empty() && presented.as_bytes().ct_eq(token.as_bytes()).into()
}

/// No origin (not a browser), the page this server serves, or the desktop window.
fn is_own_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    match origin.split_once("://") {
        Some(("tauri", "localhost")) => true,
        Some(("http" | "https", authority)) => {
            authority == "tauri.localhost"
                || headers
                    .get(header::HOST)
                    .is_some_and(|host| host.as_bytes().eq_ignore_ascii_case(authority.as_bytes()))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    axum::http::HeaderName::from_static(name),
                    value.parse().unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn origins() {
        for (origin, is_own) in [
            ("http://127.0.0.1:8000", true),
            ("tauri://localhost", true),
            ("http://tauri.localhost", true),
            ("http://127.0.0.1:9000", false),
            ("https://evil.example", false),
            ("null", false),
        ] {
            let headers = headers(&[("host", "127.0.0.1:8000"), ("origin", origin)]);
            assert_eq!(is_own_origin(&headers), is_own, "{origin}");
        }
        assert!(is_own_origin(&headers(&[("host", "127.0.0.1:8000")])));
    }

    #[test]
    fn an_empty_token_opens_nothing() {
        assert!(!is_equal("", ""));
        assert!(is_equal("abc", "abc"));
        assert!(!is_equal("abd", "abc"));
    }
}
