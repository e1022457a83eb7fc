//! A running server: claimed, bound, announced, and ended in order.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use macmlx_control::{Activity, Control, Counted};
use macmlx_inference::Backend;
use macmlx_server::{ApiKey, ApiKeySource, IfBusy, Options, bind};
use macmlx_store::models::Files;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    Host, Names,
    claim::{Claim, Owner, Record},
    keys::NamedKeys,
};

/// How long running answers have after the end was asked for.
const GRACE: Duration = Duration::from_secs(5);

/// What is decided for one run; everything left out is as in the settings.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    pub host: Option<String>,
    pub port: Option<u16>,
    /// Take the wanted port or none.
    pub is_port_fixed: bool,
    pub api_key: Option<String>,
    /// Model to load right after the start; it answers to unknown names, too.
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

/// A server that runs until stopped.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    /// The port that was asked for, when it was taken.
    pub wanted_port: Option<u16>,
    pub needs_api_key: bool,
    /// Secret of the control routes.
    pub control_token: String,
    stop: watch::Sender<bool>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Host {
    /// Starts the server. The model to preload, if any, is resolved before anything is opened and
    /// loaded while clients may connect already.
    pub async fn serve(&self, options: ServeOptions, owner: Owner) -> anyhow::Result<Server> {
        let mut settings = self.settings.clone();
        if let Some(model) = &options.model {
            settings.default_model = Some(model.clone());
        }
        let names = Arc::new(Names::new(
            self.library.clone(),
            self.aliases.clone(),
            &settings,
        ));
        let preload = match &settings.default_model {
            Some(reference) => Some(names.known(reference)?.id),
            None => None,
        };
        let mut claim = if options.is_private {
            None
        } else {
            Some(Claim::new(&self.home)?)
        };
        let control_token =
            macmlx_settings::control_token(&self.home).context("cannot make the control token")?;
        let api_key = match &options.api_key {
            _ if options.is_private => Some(control_token.as_str()),
            Some(key) => Some(key.as_str()).filter(|key| !key.is_empty()),
            None => self.settings.api_key(),
        };
        let server_options = Options {
            api_keys: api_key.map(ApiKey::new).into_iter().collect(),
            more_api_keys: self.named_keys(&options)?,
            // The owner's own tools need no second secret.
            owner_key: Some(ApiKey::new(&control_token)),
            allowed_hosts: options.allowed_hosts.clone(),
            cors_origins: options.cors_origins.clone(),
            ..Options::default()
        };
        let (host, port) = if options.is_private {
            ("127.0.0.1", 0)
        } else {
            (
                options
                    .host
                    .as_deref()
                    .unwrap_or(&self.settings.server_host),
                options.port.unwrap_or(self.settings.server_port),
            )
        };
        let if_busy = if options.is_port_fixed {
            IfBusy::Fail
        } else {
            IfBusy::NextFree
        };
        let needs_api_key = server_options.asks_for_key();
        let listener = bind(host, port, if_busy, &server_options).await?;
        let address = listener.local_addr();

        let activity = Arc::new(Activity::default());
        let backend: Arc<dyn Backend> = Arc::new(Counted::new(
            self.backend(&options, &names)?,
            activity.clone(),
        ));
        let weak = Arc::downgrade(&backend);
        names.ask(move || {
            weak.upgrade()
                .map_or_else(Vec::new, |backend| backend.loaded())
        });
        let (stop, stopped) = watch::channel(false);
        let control = macmlx_control::router(Control {
            backend: backend.clone(),
            catalog: names.clone(),
            activity,
            token: control_token.clone(),
            models: self.models(),
            started: Instant::now(),
            shut_down: {
                let stop = stop.clone();
                Arc::new(move || {
                    stop.send_replace(true);
                })
            },
        });
        let files = Arc::new(Files::new(
            self.library.clone(),
            self.hub(),
            self.home.downloads(),
            backend.clone(),
        ));
        let router = macmlx_server::router(backend.clone(), names, files, control, server_options);
        if let Some(claim) = &mut claim {
            claim
                .announce(&Record::of_this_process(address, preload.clone(), owner))
                .context("cannot write the pid file")?;
        }
        if let Some(model) = preload {
            tokio::spawn(preload_model(backend.clone(), model));
        }
        let task = tokio::spawn(async move {
            let served = macmlx_server::serve(listener, router, is_set(stopped), GRACE).await;
            drop(backend);
            drop(claim);
            served.context("the server failed")
        });
        Ok(Server {
            address,
            wanted_port: (port != 0 && port != address.port()).then_some(port),
            needs_api_key,
            control_token,
            stop,
            task,
        })
    }
}

impl Host {
    /// What answers.
    #[cfg_attr(
        not(feature = "playback"),
        expect(clippy::unnecessary_wraps, reason = "a script may be unreadable")
    )]
    fn backend(
        &self,
        options: &ServeOptions,
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
        Ok(Arc::new(self.engine(names.clone())))
    }

    /// A list of keys that cannot be read ends the start: it must not open the server.
    fn named_keys(&self, options: &ServeOptions) -> anyhow::Result<Option<Arc<dyn ApiKeySource>>> {
        if options.is_private {
            return Ok(None);
        }
        let keys = self.api_keys();
        keys.list()?;
        Ok(Some(Arc::new(NamedKeys(keys))))
    }
}

impl Server {
    /// Base URL for people on this machine.
    pub fn url(&self) -> String {
        let ip = self.address.ip();
        // An unspecified address is reached as this machine.
        let ip = match ip {
            IpAddr::V4(v4) if v4.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(v6) if v6.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            bound => bound,
        };
        format!("http://{}", SocketAddr::new(ip, self.address.port()))
    }

    /// Begins the end: no new connections, running answers get a few seconds.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Resolves when the end has begun, whoever asked for it.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        is_set(self.stop.subscribe())
    }

    /// Waits for the end.
    pub async fn ended(self) -> anyhow::Result<()> {
        self.task.await.context("the server's task failed")?
    }
}

async fn is_set(mut flag: watch::Receiver<bool>) {
    // An error means that nobody can set it any more; the server then runs until its task ends.
    if flag.wait_for(|set| *set).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn preload_model(backend: Arc<dyn Backend>, model: String) {
    // The engine logs a load that went well, with its figures.
    if let Err(error) = backend.load(model.clone()).await {
        tracing::error!(model, %error, "the model could not be loaded");
    }
}
