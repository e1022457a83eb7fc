//! Paths as routes are told: clients double slashes and end in one, which means nothing.

use axum::{
    extract::{OriginalUri, Request},
    http::{Uri, uri::PathAndQuery},
};

/// Collapses slashes in a row and drops one at the end, ahead of everything that decides by the
/// path. The path as it was called stays in [`OriginalUri`].
pub(crate) fn normalize<B>(mut request: Request<B>) -> Request<B> {
    if let Some(uri) = collapse_slashes(request.uri()) {
        let original = std::mem::replace(request.uri_mut(), uri);
        request.extensions_mut().insert(OriginalUri(original));
    }
    request
}

/// The path as the client called it, also where a router has cut off what it has matched.
pub(crate) fn as_called<B>(request: &Request<B>) -> &str {
    let original = request.extensions().get();
    original
        .map_or(request.uri(), |OriginalUri(uri)| uri)
        .path()
}

/// `None`: it is as it should be.
fn collapse_slashes(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let is_plain = !path.contains("//") && (path.len() < 2 || !path.ends_with('/'));
    if is_plain {
        return None;
    }
    let mut plain = String::with_capacity(path.len());
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        plain.push('/');
        plain.push_str(segment);
    }
    if plain.is_empty() {
        plain.push('/');
    }
    if let Some(query) = uri.query() {
        plain.push('?');
        plain.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(plain).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_that_mean_nothing_go() {
        for (called, plain) in [
            ("//v1/models", "/v1/models"),
            ("/v1//models/", "/v1/models"),
            ("/api/tags///", "/api/tags"),
            ("//", "/"),
            ("///?a=//", "/?a=//"),
            (
                "/v1/models/?limit=1&after=/a//b/",
                "/v1/models?limit=1&after=/a//b/",
            ),
            ("/v1/models/org%2F%2Fname/", "/v1/models/org%2F%2Fname"),
            (
                "http://localhost:8000//x//events/",
                "http://localhost:8000/x/events",
            ),
            ("//evil.example/v1/models", "/evil.example/v1/models"),
        ] {
            let uri: Uri = called.parse().unwrap();
            assert_eq!(
                collapse_slashes(&uri).unwrap().to_string(),
                plain,
                "{called}"
            );
        }
        for plain in [
            "/",
            "/v1",
            "/v1/models?a=/b//",
            "*",
            "http://localhost:8000/",
        ] {
            assert_eq!(collapse_slashes(&plain.parse().unwrap()), None, "{plain}");
        }
    }

    #[test]
    fn the_path_as_it_was_called_is_kept() {
        let request = Request::builder().uri("//v1/models/").body(()).unwrap();
        let request = normalize(request);
        assert_eq!(request.uri(), "/v1/models");
        let OriginalUri(original) = request.extensions().get().unwrap();
        assert_eq!(original, "//v1/models/");
        assert_eq!(as_called(&request), "//v1/models/");
    }
}
