//! The TCP door: opened and closed while everything behind it goes on.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    extract::Request,
    middleware::{self, Next},
    response::Response,
};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use macmlx_control::{
    door::{ClosedDoor, Door, DoorState, Openness},
    events::{Event, Events},
};
use macmlx_inference::{Backend, ModelCard};
use macmlx_server::{BindError, IfBusy, Options, bind};
use macmlx_settings::LiveSettings;
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    app::is_set,
    claim::{Claim, Record},
};

/// How long running answers have after the door was closed, unless the options say otherwise.
const GRACE: Duration = Duration::from_secs(5);

/// Where the stream is that never ends by itself.
const EVENTS: &str = "/x/events";

/// How the door is to be opened; what is left out is as in the settings.
#[derive(Debug, Clone, Default)]
pub struct DoorOptions {
    pub host: Option<String>,
    pub port: Option<u16>,
    /// When the port is taken, use the next free one.
    pub may_move: bool,
    /// How long running answers have after the door was closed; `None`: five seconds.
    pub grace: Option<Duration>,
}

/// An open door.
#[derive(Debug, Clone)]
pub struct OpenDoor {
    pub address: SocketAddr,
    /// The port that was asked for, when it was taken.
    pub wanted_port: Option<u16>,
    pub needs_api_key: bool,
}

impl OpenDoor {
    /// Base URL for people on this machine.
    pub fn url(&self) -> String {
        url(self.address)
    }
}

/// Why the door stays closed.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("cannot write the pid file: {0}")]
    PidFile(#[source] io::Error),
    #[error("macMLX is ending")]
    Ending,
}

impl From<DoorError> for ClosedDoor {
    fn from(error: DoorError) -> Self {
        let message = error.to_string();
        match error {
            DoorError::Bind(BindError::Busy { .. } | BindError::AllBusy { .. }) => {
                Self::PortTaken(message)
            }
            DoorError::Bind(BindError::NeedsKey { .. }) => Self::NeedsApiKey(message),
            DoorError::Bind(
                BindError::Resolve { .. } | BindError::NoAddress { .. } | BindError::Listen { .. },
            )
            | DoorError::PidFile(_)
            | DoorError::Ending => Self::Other(message),
        }
    }
}

/// What the door leads to.
pub(crate) struct Behind {
    pub(crate) router: Router,
    pub(crate) backend: Arc<dyn Backend>,
    /// Model that is loaded when the door opens first.
    pub(crate) preload: Option<Arc<ModelCard>>,
}

pub(crate) struct TcpDoor {
    settings: Arc<LiveSettings>,
    server_options: Options,
    is_private: bool,
    claim: Mutex<Option<Claim>>,
    events: Arc<Events>,
    behind: Mutex<Option<Behind>>,
    /// The options with which it was opened last.
    options: Mutex<DoorOptions>,
    /// Locked while the door moves, so that two callers move it one after the other.
    serving: tokio::sync::Mutex<Option<Serving>>,
    seen: Mutex<Seen>,
    /// Servers that are closed but have answers that have not ended.
    draining: Mutex<Vec<JoinHandle<io::Result<()>>>>,
}

/// What there is to see of it from outside.
#[derive(Debug, Clone, Default)]
enum Seen {
    #[default]
    Closed,
    Open(OpenDoor),
    Failed(String),
}

struct Serving {
    open: OpenDoor,
    stop: watch::Sender<bool>,
    released: BoxFuture<'static, ()>,
    task: JoinHandle<io::Result<()>>,
}

impl fmt::Debug for TcpDoor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TcpDoor")
            .field("is_private", &self.is_private)
            .field("seen", &*self.seen.lock())
            .finish_non_exhaustive()
    }
}

impl TcpDoor {
    pub(crate) fn new(
        settings: Arc<LiveSettings>,
        server_options: Options,
        is_private: bool,
        claim: Option<Claim>,
        events: Arc<Events>,
    ) -> Self {
        Self {
            settings,
            server_options,
            is_private,
            claim: Mutex::new(claim),
            events,
            behind: Mutex::default(),
            options: Mutex::default(),
            serving: tokio::sync::Mutex::default(),
            seen: Mutex::default(),
            draining: Mutex::default(),
        }
    }

    pub(crate) fn stand_before(&self, behind: Behind) {
        *self.behind.lock() = Some(behind);
    }

    /// Lets go of everything behind it, and of the home.
    pub(crate) fn release(&self) {
        self.behind.lock().take();
        self.claim.lock().take();
    }

    pub(crate) async fn open_with(&self, options: DoorOptions) -> Result<OpenDoor, DoorError> {
        let mut serving = self.serving.lock().await;
        if let Some(serving) = &*serving {
            return Ok(serving.open.clone());
        }
        *self.options.lock() = options.clone();
        match self.serve(&options).await {
            Ok(new) => {
                let open = new.open.clone();
                *serving = Some(new);
                self.show(Seen::Open(open.clone()));
                Ok(open)
            }
            Err(error) => {
                self.show(Seen::Failed(error.to_string()));
                Err(error)
            }
        }
    }

    async fn serve(&self, options: &DoorOptions) -> Result<Serving, DoorError> {
        let host = options.host.clone();
        let host = host.unwrap_or_else(|| self.settings.get().server_host.clone());
        let (host, port) = if self.is_private {
            ("127.0.0.1", 0)
        } else {
            (host.as_str(), self.wanted_port(options))
        };
        let if_busy = if options.may_move {
            IfBusy::NextFree
        } else {
            IfBusy::Fail
        };
        let listener = bind(host, port, if_busy, &self.server_options).await?;
        let address = listener.local_addr();
        let (router, preload) = {
            let mut behind = self.behind.lock();
            let behind = behind.as_mut().ok_or(DoorError::Ending)?;
            let preload = behind.preload.take();
            let preload = preload.map(|model| (behind.backend.clone(), model));
            (behind.router.clone(), preload)
        };
        if let Some(claim) = &mut *self.claim.lock() {
            let model = preload.as_ref().map(|(_, model)| model.id.clone());
            claim
                .announce(&Record::of_this_process(address, model, claim.owner()))
                .map_err(DoorError::PidFile)?;
        }
        if let Some((backend, model)) = preload {
            tokio::spawn(preload_model(backend, model));
        }
        let stop = watch::Sender::new(false);
        let stopped = stop.subscribe();
        let router = router.layer(middleware::from_fn(move |request: Request, next: Next| {
            end_events(request, next, stopped.clone())
        }));
        let released = listener.released().boxed();
        let stopped = is_set(stop.subscribe());
        let grace = options.grace.unwrap_or(GRACE);
        let task = tokio::spawn(macmlx_server::serve(listener, router, stopped, grace));
        let open = OpenDoor {
            address,
            wanted_port: (port != 0 && port != address.port()).then_some(port),
            needs_api_key: self.server_options.asks_for_key(),
        };
        Ok(Serving {
            open,
            stop,
            released,
            task,
        })
    }

    pub(crate) async fn shut(&self) {
        let mut serving = self.serving.lock().await;
        let Some(serving) = serving.take() else {
            let has_failed = matches!(*self.seen.lock(), Seen::Failed(_));
            if has_failed {
                self.show(Seen::Closed);
            }
            return;
        };
        if let Some(claim) = &mut *self.claim.lock() {
            claim.retract();
        }
        serving.stop.send_replace(true);
        serving.released.await;
        {
            let mut draining = self.draining.lock();
            draining.retain(|task| !task.is_finished());
            draining.push(serving.task);
        }
        self.show(Seen::Closed);
    }

    /// Waits for the answers that were under way when the door was closed.
    pub(crate) async fn drain(&self) {
        let draining = std::mem::take(&mut *self.draining.lock());
        for task in draining {
            match task.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "the server failed"),
                Err(error) => tracing::error!(%error, "the server's task failed"),
            }
        }
    }

    fn wanted_port(&self, options: &DoorOptions) -> u16 {
        options.port.unwrap_or(self.settings.get().server_port)
    }

    fn show(&self, seen: Seen) {
        *self.seen.lock() = seen;
        self.events.publish(Event::Door { door: self.state() });
    }
}

impl Door for TcpDoor {
    fn state(&self) -> DoorState {
        let (state, open, error) = match self.seen.lock().clone() {
            Seen::Closed => (Openness::Closed, None, None),
            Seen::Open(open) => (Openness::Open, Some(open), None),
            Seen::Failed(error) => (Openness::Failed, None, Some(error)),
        };
        let wanted_port = self.wanted_port(&self.options.lock());
        DoorState {
            state,
            url: open.as_ref().map(OpenDoor::url),
            address: open.as_ref().map(|open| open.address.to_string()),
            wanted_port,
            needs_api_key: self.server_options.asks_for_key()
                || open.is_some_and(|open| open.needs_api_key),
            error,
        }
    }

    fn open(&self) -> BoxFuture<'_, Result<DoorState, ClosedDoor>> {
        async move {
            let options = DoorOptions {
                // A person who asks can choose another port in place of this one.
                may_move: false,
                ..self.options.lock().clone()
            };
            self.open_with(options).await?;
            Ok(self.state())
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, DoorState> {
        async move {
            self.shut().await;
            self.state()
        }
        .boxed()
    }
}

/// A watcher of events never has its answer, so it is not waited for.
async fn end_events(request: Request, next: Next, stopped: watch::Receiver<bool>) -> Response {
    let is_endless = request.uri().path() == EVENTS;
    let response = next.run(request).await;
    if !is_endless {
        return response;
    }
    response.map(|body| {
        let events = body.into_data_stream().take_until(is_set(stopped).boxed());
        axum::body::Body::from_stream(events)
    })
}

/// Base URL of an address for programs of this machine.
fn url(address: SocketAddr) -> String {
    // An unspecified address is reached as this machine.
    let ip = match address.ip() {
        IpAddr::V4(v4) if v4.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(v6) if v6.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        bound => bound,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

async fn preload_model(backend: Arc<dyn Backend>, model: Arc<ModelCard>) {
    // The engine logs a load that went well, with its figures.
    if let Err(error) = backend.load(model.clone()).await {
        tracing::error!(model = model.id, %error, "the model could not be loaded");
    }
}
