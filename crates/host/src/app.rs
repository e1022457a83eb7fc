//! The application: everything that lives with or without an open port, and its orderly end.

use std::{sync::Arc, time::Instant};

use anyhow::Context;
use axum::{
    body::Body,
    http::{HeaderValue, Request, Response, StatusCode, header},
    response::IntoResponse,
};
use macmlx_server::InProcess;
use macmlx_settings::{HostPattern, OriginPattern, UnknownModels};
use parking_lot::Mutex;
use tokio::{sync::watch, task::AbortHandle};

use crate::{
    Host,
    claim::Owner,
    door::{DoorOptions, OpenDoor, TcpDoor},
    parts::{self, Parts},
};

/// What is decided for one run; everything left out is as in the settings.
#[derive(Debug, Clone, Default)]
pub struct AppOptions {
    /// Key clients must send; an empty one is none.
    pub api_key: Option<String>,
    /// Model to load when the door opens first; it answers to unknown names, too.
    pub model: Option<String>,
    /// How requests for models that are not here are answered.
    pub unknown_models: Option<UnknownModels>,
    /// If true, the server is for one command of this process only: it takes any free port of this
    /// machine, has the control token as key, and does not claim the home.
    pub is_private: bool,
    /// Names under which the server may be reached beside those of this machine and the settings'.
    pub allowed_hosts: Vec<HostPattern>,
    /// Web pages that may call client routes beside the settings'.
    pub allowed_origins: Vec<OriginPattern>,
    /// A script whose answers are played in place of generated ones.
    #[cfg(feature = "playback")]
    pub playback: Option<std::path::PathBuf>,
}

/// A running application. Copies are handles to the same one.
#[derive(Debug, Clone)]
pub struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    parts: Parts,
    /// `None` once it ends.
    in_process: Mutex<Option<Arc<InProcess>>>,
    door: Arc<TcpDoor>,
    stop: watch::Sender<bool>,
    tasks: Vec<AbortHandle>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The routes hold the door that holds the routes.
        self.door.release();
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl App {
    /// Starts everything but the door. A model named in the options must be there.
    pub async fn start(host: Host, options: AppOptions, owner: Owner) -> anyhow::Result<Self> {
        tokio::task::spawn_blocking(move || Self::build(&host, &options, owner))
            .await
            .context("the start failed")?
    }

    fn build(host: &Host, options: &AppOptions, owner: Owner) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let (parts, backend) = Parts::build(host, options, owner)?;
        let stop = watch::Sender::new(false);
        let shut_down = {
            let stop = stop.clone();
            Arc::new(move || {
                stop.send_replace(true);
            })
        };
        let door = parts.door.clone();
        let router = parts.router(host, backend.clone(), owner, begun, shut_down);
        door.stand_before(parts.behind(router.clone(), backend));
        Ok(Self(Arc::new(Shared {
            in_process: Mutex::new(Some(Arc::new(InProcess::new(router)))),
            door,
            stop,
            tasks: parts::forward(&parts, host),
            parts,
        })))
    }

    /// The in-process door: answers a request of the window, whether or not a port is open. Who it
    /// comes from is sure, so the token is put on it here and the window never sees it.
    pub async fn call(&self, mut request: Request<Body>) -> Response<Body> {
        let in_process = self.0.in_process.lock().clone();
        let Some(in_process) = in_process else {
            return (StatusCode::SERVICE_UNAVAILABLE, "macMLX is ending").into_response();
        };
        let bearer = HeaderValue::from_str(&format!("Bearer {}", self.0.parts.control_token));
        let Ok(mut bearer) = bearer else {
            return (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the control token is damaged",
            )
                .into_response();
        };
        bearer.set_sensitive(true);
        let headers = request.headers_mut();
        headers.remove(header::ORIGIN);
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        headers.insert(header::AUTHORIZATION, bearer);
        in_process.call(request).await
    }

    /// Opens the TCP door; one that is open stays as it is.
    pub async fn open_door(&self, options: DoorOptions) -> anyhow::Result<OpenDoor> {
        Ok(self.0.door.open_with(options).await?)
    }

    /// Closes the TCP door: its port is free at once, running answers get a few seconds. What is
    /// loaded stays.
    pub async fn close_door(&self) {
        self.0.door.shut().await;
    }

    /// Secret of the control routes.
    pub fn control_token(&self) -> &str {
        &self.0.parts.control_token
    }

    /// Where a browser of this machine finds the UI. It carries the control token, in the fragment,
    /// which browsers keep to themselves.
    pub fn ui_url(&self, door: &OpenDoor) -> String {
        format!("{}/#token={}", door.url(), self.control_token())
    }

    /// Begins the end, for [`App::stopping`] to resolve; [`App::shut_down`] is the end itself.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
    }

    /// Resolves when any part of the application has asked for the end.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        is_set(self.0.stop.subscribe())
    }

    /// Ends everything: the window's answers at once, those through the door after a few seconds.
    /// Later calls are refused.
    pub async fn shut_down(&self) {
        self.0.stop.send_replace(true);
        let in_process = self.0.in_process.lock().take();
        if let Some(in_process) = in_process {
            in_process.close();
        }
        self.0.door.shut().await;
        self.0.door.drain().await;
        self.0.parts.end().await;
        self.0.door.release();
    }
}

pub(crate) async fn is_set(mut flag: watch::Receiver<bool>) {
    // An error means that the sender is gone, so the flag can never be set.
    if flag.wait_for(|set| *set).await.is_err() {
        std::future::pending::<()>().await;
    }
}
