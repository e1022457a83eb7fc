//! The router behind the in-process door, as the shell itself uses it.

use http::{Method, header};
use http_body_util::BodyExt as _;
use macmlx_host::{App, Body};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tauri::{AppHandle, Manager as _, async_runtime};

/// The running app's router.
#[derive(Debug, Clone)]
pub(crate) struct Router(App);

/// Why a route gave no answer of use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{path}: {status}: {message}")]
    Refused {
        path: String,
        status: http::StatusCode,
        message: String,
    },
    #[error("{path}: the answer broke off: {reason}")]
    BrokenOff { path: String, reason: String },
    #[error("{path}: the answer is not what was expected: {source}")]
    Unexpected {
        path: String,
        source: serde_json::Error,
    },
    #[error("{path}: this is no request: {source}")]
    Request { path: String, source: http::Error },
}

impl Router {
    pub(crate) fn new(app: App) -> Self {
        Self(app)
    }

    pub(crate) fn app(&self) -> &App {
        &self.0
    }

    /// Passes a request on; the body of the answer comes as it is made.
    pub(crate) async fn call(&self, request: http::Request<Body>) -> http::Response<Body> {
        self.0.call(request).await
    }

    /// The answer of a route as `T`.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let body = self.send(Method::GET, path, None).await?;
        let bytes = collect(body, path).await?;
        serde_json::from_slice(&bytes).map_err(|source| Error::Unexpected {
            path: path.to_owned(),
            source,
        })
    }

    /// Sends a request and returns the body of an answer that is no error.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Body, Error> {
        let mut builder = http::Request::builder().method(method).uri(path);
        if body.is_some() {
            builder = builder.header(header::CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = builder.body(body).map_err(|source| Error::Request {
            path: path.to_owned(),
            source,
        })?;
        let response = self.call(request).await;
        let status = response.status();
        if status.is_success() {
            return Ok(response.into_body());
        }
        let bytes = collect(response.into_body(), path).await?;
        let message = serde_json::from_slice::<Value>(&bytes)
            .ok()
            .and_then(|body| Some(body["error"]["message"].as_str()?.to_owned()))
            .unwrap_or_default();
        Err(Error::Refused {
            path: path.to_owned(),
            status,
            message,
        })
    }
}

async fn collect(body: Body, path: &str) -> Result<Vec<u8>, Error> {
    match body.collect().await {
        Ok(collected) => Ok(collected.to_bytes().to_vec()),
        Err(error) => Err(Error::BrokenOff {
            path: path.to_owned(),
            reason: error.to_string(),
        }),
    }
}

/// Does what a menu item stands for: its route. What comes of it is told by events.
pub(crate) fn act(app: &AppHandle, method: Method, path: String, body: Option<Value>) {
    let Some(router) = app.try_state::<Router>() else {
        return;
    };
    let router = router.inner().clone();
    async_runtime::spawn(async move {
        if let Err(error) = router.send(method, &path, body.as_ref()).await {
            tracing::warn!(%error, "the menu's request failed");
        }
    });
}
