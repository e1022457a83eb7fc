//! The ways into the router: which one a request took, and the one without a port.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{Router, body::Body, extract::Request, http::Extensions, response::Response};
use tokio::sync::watch;
use tower::ServiceExt;

use crate::{closing::Closing, route_path::normalize};

/// Attached to each request that came through a door.
#[derive(Debug, Clone)]
pub(crate) enum Door {
    /// A port. Once it has asked for a key it does so until it is closed, so that no loss of keys
    /// opens it.
    Port {
        has_asked: Arc<AtomicBool>,
    },
    InProcess,
}

impl Door {
    /// Whether a key must be sent. `keys` says whether there are any now.
    pub(crate) fn asks_for_key(extensions: &Extensions, keys: bool, router: &AtomicBool) -> bool {
        let has_asked = match extensions.get::<Self>() {
            Some(Self::Port { has_asked }) => has_asked,
            Some(Self::InProcess) | None => router,
        };
        if keys {
            has_asked.store(true, Ordering::Relaxed);
        }
        has_asked.load(Ordering::Relaxed)
    }

    pub(crate) fn is_in_process(extensions: &Extensions) -> bool {
        matches!(extensions.get::<Self>(), Some(Self::InProcess))
    }
}

/// The way in without a port, for a window of the same process.
pub struct InProcess {
    router: Router,
    close: watch::Sender<bool>,
    closing: Closing,
}

impl fmt::Debug for InProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("InProcess").finish_non_exhaustive()
    }
}

impl InProcess {
    pub fn new(router: Router) -> Self {
        let (close, closing) = Closing::pair();
        Self {
            router,
            close,
            closing,
        }
    }

    /// Answers one request. The body of the answer comes as it is made; dropping it cancels what
    /// makes it.
    pub async fn call(&self, mut request: Request<Body>) -> Response {
        request.extensions_mut().insert(self.closing.clone());
        request.extensions_mut().insert(Door::InProcess);
        match self.router.clone().oneshot(normalize(request)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Ends answers under way: streams with an error frame, others with 503.
    pub fn close(&self) {
        self.close.send_replace(true);
    }
}
