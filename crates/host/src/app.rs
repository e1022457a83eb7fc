//! The application: everything that lives with or without an open port, and its orderly end.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use anyhow::Context;
use axum::{
    body::Body,
    http::{HeaderValue, Request, Response, StatusCode, header},
    response::IntoResponse,
};
use macmlx_control::{Activity, Control, Counted, events::Events, models::Models, status::Sources};
use macmlx_inference::Backend;
use macmlx_server::{ApiKey, ApiKeySource, InProcess, Options};
use macmlx_store::models::Files;
use tokio::sync::watch;

use crate::{
    Host, Names,
    claim::{Claim, Owner},
    door::{Behind, DoorOptions, OpenDoor, TcpDoor},
    keys::NamedKeys,
};

/// What is decided for one run; everything left out is as in the settings.
#[derive(Debug, Clone, Default)]
pub struct AppOptions {
    /// Key clients must send; an empty one is none.
    pub api_key: Option<String>,
    /// Model to load when the door opens first; it answers to unknown names, too.
    pub model: Option<String>,
    /// For one command of this process only: any free port of this machine, the control token as
    /// key, and no claim on the home.
    pub is_private: bool,
    /// Names under which the server may be reached beside those of this machine.
    pub allowed_hosts: Vec<String>,
    /// Web origins that may call client routes.
    pub cors_origins: Vec<String>,
    /// A script whose answers are played in place of generated ones.
    #[cfg(feature = "playback")]
    pub playback: Option<std::path::PathBuf>,
}

/// A running application. Copies are handles to the same one.
#[derive(Debug, Clone)]
pub struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    control_token: Arc<str>,
    /// `None` once it ends.
    in_process: Mutex<Option<Arc<InProcess>>>,
    door: Arc<TcpDoor>,
    stop: watch::Sender<bool>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The routes hold the door that holds the routes.
        self.door.release();
    }
}

impl App {
    /// Starts everything but the door. A model named in the options must be there.
    pub async fn start(host: Host, options: AppOptions, owner: Owner) -> anyhow::Result<Self> {
        tokio::task::spawn_blocking(move || Self::build(&host, options, owner))
            .await
            .context("the start failed")?
    }

    fn build(host: &Host, options: AppOptions, owner: Owner) -> anyhow::Result<Self> {
        let mut settings = host.settings.clone();
        if let Some(model) = &options.model {
            settings.default_model = Some(model.clone());
        }
        let names = Arc::new(Names::new(
            host.library.clone(),
            host.aliases.clone(),
            &settings,
        ));
        let preload = match &settings.default_model {
            Some(reference) => Some(names.known(reference)?.id),
            None => None,
        };
        let claim = if options.is_private {
            None
        } else {
            Some(Claim::new(&host.home, owner)?)
        };
        let control_token: Arc<str> = macmlx_settings::control_token(&host.home)
            .context("cannot make the control token")?
            .into();
        let server_options = server_options(host, &options, &control_token)?;
        let events = Arc::new(Events::default());
        let door = Arc::new(TcpDoor::new(
            settings,
            server_options.clone(),
            options.is_private,
            claim,
            events.clone(),
        ));
        let activity = Arc::new(Activity::default());
        let backend: Arc<dyn Backend> = Arc::new(Counted::new(
            backend(host, &options, &names)?,
            activity.clone(),
        ));
        let weak = Arc::downgrade(&backend);
        names.ask(move || {
            weak.upgrade()
                .map_or_else(Vec::new, |backend| backend.loaded())
        });
        let stop = watch::Sender::new(false);
        let control = macmlx_control::router(Control {
            token: control_token.clone(),
            status: Arc::new(Sources {
                backend: backend.clone(),
                catalog: names.clone(),
                activity,
                models: host.models(),
                started: Instant::now(),
                shut_down: {
                    let stop = stop.clone();
                    Arc::new(move || {
                        stop.send_replace(true);
                    })
                },
            }),
            door: door.clone(),
            events,
            models: Arc::new(Models {
                backend: backend.clone(),
                catalog: names.clone(),
            }),
        });
        let files = Arc::new(Files::new(
            host.library.clone(),
            host.hub(),
            host.home.downloads(),
            backend.clone(),
        ));
        let router = macmlx_server::router(backend.clone(), names, files, control, server_options);
        door.stand_before(Behind {
            router: router.clone(),
            backend,
            preload,
        });
        Ok(Self(Arc::new(Shared {
            control_token,
            in_process: Mutex::new(Some(Arc::new(InProcess::new(router)))),
            door,
            stop,
        })))
    }

    /// The in-process door: answers a request of the window, whether or not a port is open. Who it
    /// comes from is sure, so the token is put on it here and the window never sees it.
    pub async fn call(&self, mut request: Request<Body>) -> Response<Body> {
        let in_process = lock(&self.0.in_process).clone();
        let Some(in_process) = in_process else {
            return (StatusCode::SERVICE_UNAVAILABLE, "macMLX is ending").into_response();
        };
        let bearer = HeaderValue::from_str(&format!("Bearer {}", self.0.control_token));
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
        &self.0.control_token
    }

    /// Begins the end, for [`App::stopping`] to resolve; [`App::shut_down`] is the end itself.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
    }

    /// Resolves when the end was asked for, whoever did.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        is_set(self.0.stop.subscribe())
    }

    /// Ends everything: the window's answers at once, those through the door after a few seconds.
    /// Later calls are refused.
    pub async fn shut_down(&self) {
        self.0.stop.send_replace(true);
        let in_process = lock(&self.0.in_process).take();
        if let Some(in_process) = in_process {
            in_process.close();
        }
        self.0.door.shut().await;
        self.0.door.drained().await;
        self.0.door.release();
    }
}

/// Who may come in, and how.
fn server_options(host: &Host, options: &AppOptions, token: &str) -> anyhow::Result<Options> {
    let api_key = match &options.api_key {
        _ if options.is_private => Some(token),
        Some(key) => Some(key.as_str()).filter(|key| !key.is_empty()),
        None => host.settings.api_key(),
    };
    Ok(Options {
        api_keys: api_key.map(ApiKey::new).into_iter().collect(),
        more_api_keys: named_keys(host, options)?,
        // The owner's own tools need no second secret.
        owner_key: Some(ApiKey::new(token)),
        allowed_hosts: options.allowed_hosts.clone(),
        cors_origins: options.cors_origins.clone(),
        ..Options::default()
    })
}

/// A list of keys that cannot be read ends the start: it must not open the server.
fn named_keys(host: &Host, options: &AppOptions) -> anyhow::Result<Option<Arc<dyn ApiKeySource>>> {
    if options.is_private {
        return Ok(None);
    }
    let keys = host.api_keys();
    keys.list()?;
    Ok(Some(Arc::new(NamedKeys(keys))))
}

/// What answers.
#[cfg_attr(
    not(feature = "playback"),
    expect(clippy::unnecessary_wraps, reason = "a script may be unreadable")
)]
fn backend(
    host: &Host,
    options: &AppOptions,
    names: &Arc<Names>,
) -> anyhow::Result<Arc<dyn Backend>> {
    #[cfg(feature = "playback")]
    if let Some(path) = &options.playback {
        let script = macmlx_playback::Script::read(path)
            .with_context(|| format!("cannot play {}", path.display()))?;
        let playback = macmlx_playback::Playback::new(script, names.clone());
        return Ok(Arc::new(playback));
    }
    let _ = options;
    Ok(Arc::new(host.engine(names.clone())))
}

pub(crate) async fn is_set(mut flag: watch::Receiver<bool>) {
    // An error means that nobody can set it any more.
    if flag.wait_for(|set| *set).await.is_err() {
        std::future::pending::<()>().await;
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
