//! What a request brings, checked before a handler sees it.

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, OptionalFromRequest, Query, Request},
    http::{HeaderMap, StatusCode, header, request::Parts},
};
use serde::de::DeserializeOwned;

use crate::Problem;

/// A JSON body. Without `content-type: application/json` it is refused, so that no page of another
/// site can send one without asking first.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "the body must be JSON, with `content-type: application/json`",
            ));
        }
        parse(&read(request, state).await?).map(Self)
    }
}

/// A body that may be left out.
impl<S: Send + Sync, T: DeserializeOwned> OptionalFromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, Problem> {
        let has_json = is_json(request.headers());
        let bytes = read(request, state).await?;
        if bytes.trim_ascii().is_empty() {
            return Ok(None);
        }
        if !has_json {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "the body must be JSON, with `content-type: application/json`",
            ));
        }
        parse(&bytes).map(|body| Some(Self(body)))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state)
        .await
        .map_err(|rejection| {
            let code = match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => "too_large",
                _ => "invalid_request",
            };
            Problem::new(rejection.status(), code, rejection.body_text())
        })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    macmlx_json::read_document(bytes).map_err(|error| wrong("the body", &error))
}

/// An error in `whole`, which is told of where no field is.
fn wrong(whole: &str, error: &macmlx_json::Error) -> Problem {
    match error.path() {
        "" => Problem::invalid(format!("{whole}: {error}")),
        path => Problem::invalid_param(path, error.to_string()),
    }
}

/// Parameters of the query.
#[derive(Debug)]
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(pairs) = Query::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("the query string cannot be read"))?;
        macmlx_json::read_query(pairs)
            .map(Self)
            .map_err(|error| wrong("the query string", &error))
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body as Sent, routing::post};
    use serde::Deserialize;
    use tower::ServiceExt;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Wanted {
        count: u8,
    }

    async fn status(content_type: Option<&str>, body: &'static str) -> StatusCode {
        let router: Router = Router::new()
            .route(
                "/must",
                post(async |Body(wanted): Body<Wanted>| wanted.count.to_string()),
            )
            .route(
                "/may",
                post(async |wanted: Option<Body<Wanted>>| {
                    wanted.map_or(0, |Body(wanted)| wanted.count).to_string()
                }),
            );
        let path = if body.is_empty() { "/may" } else { "/must" };
        let mut request = Request::post(path);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let request = request.body(Sent::from(body)).unwrap();
        router.oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn only_json_is_read() {
        let json = Some("application/json; charset=utf-8");
        assert_eq!(status(json, r#"{"count": 1}"#).await, StatusCode::OK);
        assert_eq!(status(None, "").await, StatusCode::OK);
        for refused in [None, Some("text/plain")] {
            assert_eq!(
                status(refused, r#"{"count": 1}"#).await,
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            );
        }
        for wrong in [r#"{"count": 1000}"#, "{", r#"{"count": 1} x"#] {
            assert_eq!(
                status(json, wrong).await,
                StatusCode::BAD_REQUEST,
                "{wrong}"
            );
        }
    }

    #[test]
    fn an_error_names_the_field() {
        for (body, message) in [
            (
                r#"{"count": "x"}"#,
                "count: expected an integer, got a string",
            ),
            ("{}", "`count` is missing"),
            ("[]", "the body: expected an object, got a list"),
        ] {
            let problem = parse::<Wanted>(body.as_bytes()).unwrap_err();
            assert_eq!(problem.message(), message);
        }
    }

    #[test]
    fn text_and_numbers_are_read_as_clients_write_them() {
        for body in [
            &b"{\"count\": 7.0}"[..],
            b"\xef\xbb\xbf{\"count\": 7}",
            b"{\"count\": 7, \"note\": \"\\ud83d\"}",
            b"{\"count\": 7, \"note\": \"\xff\"}",
        ] {
            assert_eq!(parse::<Wanted>(body).unwrap().count, 7);
        }
    }
}
