//! What a request must pass before a handler sees it: host, origin, key; and what every reply gets.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
        header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER},
        request::Parts,
        uri::Authority,
    },
    middleware::Next,
    response::Response,
};
use futures::FutureExt;
use macmlx_protocol::{Dialect, Error};
use tokio::time::Instant;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use uuid::Uuid;

use crate::{
    dialect::{self, Words},
    door::Door,
    options::Options,
    route_path::as_called,
    router::App,
    visitors::{is_allowed_origin, is_local_host, is_own_host},
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Where SDKs of Anthropic look for the id.
const ANTHROPIC_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
/// Headers that hold a key and nothing else: Anthropic's and Azure's.
const KEY_HEADERS: [&str; 2] = ["x-api-key", "api-key"];

/// Gives each reply an id, logs it, turns a panic into 500 and puts what the router itself refuses
/// into the words of the dialect.
pub(crate) async fn outermost(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = format!("req_{}", Uuid::new_v4().simple());
    let method = request.method().clone();
    let path = as_called(&request).to_owned();
    let words = dialect::words(&request);
    let is_in_process = Door::is_in_process(request.extensions());
    let mut response = AssertUnwindSafe(next.run(request))
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| {
            tracing::error!(message = words_of(&*panic), "a handler panicked");
            dialect::refuse(words, &Error::Internal)
        });
    if let Some(error) = untold(&response, &method, &path) {
        let mut refusal = dialect::refuse(words, &error);
        // `allow` and CORS headers stay; length and type are those of the new body.
        for (name, value) in response.headers() {
            if ![CONTENT_LENGTH, CONTENT_TYPE].contains(name) {
                refusal.headers_mut().append(name, value.clone());
            }
        }
        response = refusal;
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        if words == Words::Client(Dialect::Anthropic) {
            response
                .headers_mut()
                .insert(ANTHROPIC_REQUEST_ID, value.clone());
        }
        response.headers_mut().insert(REQUEST_ID, value);
    }
    macro_rules! note {
        ($event:ident) => {
            tracing::$event!(
                %method,
                path,
                status = response.status().as_u16(),
                head_ms = begun.elapsed().as_millis() as u64,
                request_id = id,
                "request"
            )
        };
    }
    // The owner's own window looks all the time, and would fill its log with that.
    let is_look =
        method == Method::GET && path.starts_with("/x/") && response.status().is_success();
    if is_in_process || is_look {
        note!(debug);
    } else {
        note!(info);
    }
    response
}

/// What the router refused in its own words or in none.
fn untold(response: &Response, method: &Method, path: &str) -> Option<Error> {
    let content_type = response.headers().get(CONTENT_TYPE);
    match response.status() {
        StatusCode::METHOD_NOT_ALLOWED if content_type.is_none() => Some(Error::WrongMethod {
            method: method.to_string(),
            path: path.to_owned(),
        }),
        // A part of the path that is an id and cannot be read; handlers refuse in JSON.
        StatusCode::BAD_REQUEST
            if content_type.is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain")) =>
        {
            Some(Error::Invalid {
                param: None,
                message: format!("the path {path} holds bytes that are no UTF-8 text"),
            })
        }
        _ => None,
    }
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

/// Refuses names that a web site could have pointed at this machine (DNS rebinding).
pub(crate) async fn host(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    by_name(&app.options, is_local_host, request, next).await
}

/// Guards the owner's routes and pages: takes only names that no other machine can have.
pub(crate) async fn own_host(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    by_name(&app.options, is_own_host, request, next).await
}

async fn by_name(
    options: &Options,
    is_allowed: fn(&str, &Options) -> bool,
    request: Request,
    next: Next,
) -> Response {
    match host_of(request.headers(), request.uri()) {
        Some(host) if !is_allowed(host, options) => dialect::refuse(
            dialect::words(&request),
            &Error::Forbidden {
                message: format!(
                    "the server does not answer to the name `{host}` here; add it to `allowedHosts` \
                     in the settings, or to the command as `macmlx serve --allow-host`"
                ),
            },
        ),
        // The in-process door and HTTP/1.0 name no host; browsers always do.
        _ => next.run(request).await,
    }
}

/// Refuses pages of other web sites also where a browser would not ask first.
pub(crate) async fn origin(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match request.headers().get(ORIGIN) {
        Some(origin)
            if !is_allowed_origin(
                origin,
                host_of(request.headers(), request.uri()),
                &app.options,
            ) =>
        {
            dialect::refuse(
                dialect::words(&request),
                &Error::Forbidden {
                    message: format!(
                        "pages of {} may not use this server; add it to `allowedOrigins` in the \
                         settings, or to the command as `macmlx serve --allow-origin`",
                        String::from_utf8_lossy(origin.as_bytes())
                    ),
                },
            )
        }
        _ => next.run(request).await,
    }
}

/// Asks for a key where one is set. That the last key was removed does not open a server that was
/// closed.
pub(crate) async fn api_key(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let keys = app.options.asks_for_key();
    if !Door::asks_for_key(request.extensions(), keys, &app.is_closed)
        || read_keys(request.headers()).any(|presented| app.options.is_known_key(presented))
    {
        next.run(request).await
    } else {
        dialect::refuse(dialect::words(&request), &Error::Unauthorized)
    }
}

/// Refuses everyone but the owner, whatever keys clients have.
pub(crate) fn expect_owner(app: &App, headers: &HeaderMap) -> Result<(), Error> {
    if read_keys(headers).any(|presented| app.options.is_owner_key(presented)) {
        Ok(())
    } else {
        Err(Error::Forbidden {
            message: "only the owner of this server may do this: send the control token as \
                      `Authorization: Bearer <token>`"
                .into(),
        })
    }
}

/// Lets pages of allowed origins read replies. SDKs send whole families of headers
/// (`anthropic-*`, `x-stainless-*`), so what a page asks for is what it may send.
pub(crate) fn cors(options: &Options) -> CorsLayer {
    let options = options.clone();
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(
            move |origin: &HeaderValue, parts: &Parts| {
                is_allowed_origin(origin, host_of(&parts.headers, &parts.uri), &options)
            },
        ))
        .allow_headers(AllowHeaders::mirror_request())
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::DELETE])
        .expose_headers([REQUEST_ID, ANTHROPIC_REQUEST_ID, RETRY_AFTER])
        .allow_private_network(true)
        .max_age(Duration::from_hours(1))
}

/// What may be a key. A client that sends its key as all of `Authorization` means it so.
fn read_keys(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let bearer = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| match value.trim().split_once(' ') {
            Some((scheme, key)) => scheme.eq_ignore_ascii_case("bearer").then(|| key.trim()),
            None => Some(value.trim()),
        });
    let plain = KEY_HEADERS
        .iter()
        .filter_map(|name| headers.get(*name)?.to_str().ok());
    bearer.into_iter().chain(plain)
}

/// Name or address the client used, with its port. HTTP/2 has it in the URI.
fn host_of<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    match headers.get(HOST) {
        // A header that is no text is no name of ours.
        Some(host) => Some(host.to_str().unwrap_or("")),
        None => uri.authority().map(Authority::as_str),
    }
}
