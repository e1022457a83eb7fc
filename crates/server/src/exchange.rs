//! Request bodies in, JSON replies out.

use axum::{
    Json,
    body::Bytes,
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::StreamExt;
use macmlx_protocol::{Body, Dialect, Error, Reply};

use crate::content_encoding::{announced_bytes, read_error};

/// How many times the limit is read and thrown away before the connection is given up.
const DRAINED_LIMITS: usize = 4;

/// A request's body, read whole, and its type.
#[derive(Debug)]
pub(crate) struct Received {
    content_type: Option<HeaderValue>,
    bytes: Bytes,
}

impl Received {
    pub(crate) fn body(&self) -> Body<'_> {
        Body {
            content_type: self
                .content_type
                .as_ref()
                .and_then(|value| value.to_str().ok()),
            bytes: &self.bytes,
        }
    }
}

/// What an endpoint reads of a request.
pub(crate) async fn receive(request: Request, limit_bytes: usize) -> Result<Received, Error> {
    let content_type = request.headers().get(header::CONTENT_TYPE).cloned();
    let bytes = read_body(request, limit_bytes).await?;
    Ok(Received {
        content_type,
        bytes,
    })
}

/// The whole body.
pub(crate) async fn read_body(request: Request, limit_bytes: usize) -> Result<Bytes, Error> {
    let is_waiting_to_send = request.headers().contains_key(header::EXPECT);
    let announced = announced_bytes(request.headers());
    let too_large = announced.is_some_and(|bytes| bytes > limit_bytes);
    if too_large && is_waiting_to_send {
        return Err(Error::TooLarge { limit_bytes });
    }
    let mut stream = request.into_body().into_data_stream();
    let mut body = Vec::with_capacity(if too_large { 0 } else { announced.unwrap_or(0) });
    let mut seen = 0_usize;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| read_error(&error, limit_bytes))?;
        seen = seen.saturating_add(chunk.len());
        if seen > limit_bytes.saturating_mul(DRAINED_LIMITS) {
            break;
        }
        // A client that is still writing would not see the reply: the rest is read, not kept.
        if seen > limit_bytes || too_large {
            body = Vec::new();
        } else {
            body.extend_from_slice(&chunk);
        }
    }
    if too_large || seen > limit_bytes {
        return Err(Error::TooLarge { limit_bytes });
    }
    Ok(body.into())
}

pub(crate) fn respond(reply: Reply) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(reply.body)).into_response();
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// A JSON answer, or an error in the dialect's shape.
pub(crate) fn answer(dialect: Dialect, result: Result<serde_json::Value, Error>) -> Response {
    match result {
        Ok(body) => Json(body).into_response(),
        Err(error) => respond(dialect.error_reply(&error)),
    }
}
