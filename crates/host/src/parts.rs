//! What an application is made of, put together from settings and folders.

use std::{fmt, sync::Arc, time::Instant};

use anyhow::Context;
use axum::Router;
use macmlx_control::{
    Activity, Control, Counted, Machine,
    chat::Chat,
    conversations::ConversationSources,
    downloads,
    events::{Event, Events},
    hub,
    keys::Keys,
    mcp,
    models::{Models, TraitsCache},
    parameters::ParameterSources,
    settings::SettingsSources,
    status::{self, StatusSources},
};
use macmlx_inference::{Backend, Catalog, ModelCard, TimeToLive};
use macmlx_mcp::{Approvals, LoginShell, Pool, PoolSetup, ToolLoop};
use macmlx_server::{ApiKey, ApiKeySource, Options};
use macmlx_settings::{Home, McpServers, ModelParametersFolder, ToolPolicies};
use macmlx_store::{conversations::Conversations, downloads::Downloads, models::Files};
use tokio::task::{AbortHandle, JoinHandle};

use crate::{
    AppOptions, Host, Names,
    claim::{Claim, Owner},
    defaults::{ModelDefaults, time_to_live},
    door::{Behind, TcpDoor},
    engine,
    generic_tools::GenericTools,
    keys::LiveKeys,
    names::RunNames,
    ui,
    visitors::{LiveVisitors, own_name},
};

/// The parts that live as long as the application.
pub(crate) struct Parts {
    pub(crate) control_token: Arc<str>,
    pub(crate) door: Arc<TcpDoor>,
    names: Arc<Names>,
    activity: Arc<Activity>,
    events: Arc<Events>,
    machine: Arc<Machine>,
    downloads: Downloads,
    pool: Arc<Pool>,
    parameters: Arc<ModelParametersFolder>,
    is_private: bool,
    server_options: Options,
    /// Model to load when the door opens first.
    preload: Option<Arc<ModelCard>>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Parts")
            .field("door", &self.door)
            .finish_non_exhaustive()
    }
}

impl Parts {
    /// Builds them, and what answers, which only the routes hold so that it ends with them. The home
    /// is claimed from here on. Blocks, within a runtime.
    pub(crate) fn build(
        host: &Host,
        options: &AppOptions,
        owner: Owner,
    ) -> anyhow::Result<(Self, Arc<dyn Backend>)> {
        let run = RunNames {
            default_model: options.model.clone(),
            unknown: options.unknown_models,
        };
        let machine = Arc::new(Machine::default());
        let names = Arc::new(host.names_of(run, machine.memory_total_bytes()));
        let preload = preload(&names, options)?;
        let claim = if options.is_private {
            None
        } else {
            Some(Claim::new(&host.home, owner)?)
        };
        let control_token: Arc<str> = macmlx_settings::control_token(&host.home)
            .context("cannot make the control token")?
            .into();
        let server_options = server_options(host, options, &control_token)?;
        let events = Arc::new(Events::default());
        let activity = Arc::new(Activity::default());
        let parameters = parameters(host, options);
        let backend: Arc<dyn Backend> = Arc::new(Counted::new(
            Arc::new(ModelDefaults::new(
                Arc::new(GenericTools::new(
                    answering(host, options, time_to_live(parameters.clone()))?,
                    host.live.clone(),
                )),
                parameters.clone(),
            )),
            activity.clone(),
            events.clone(),
        ));
        let weak = Arc::downgrade(&backend);
        names.ask(move || {
            weak.upgrade()
                .map_or_else(Vec::new, |backend| backend.loaded())
        });
        let parts = Self {
            control_token,
            door: Arc::new(TcpDoor::new(
                host.live.clone(),
                server_options.clone(),
                options.is_private,
                claim,
                events.clone(),
            )),
            names,
            activity,
            events,
            machine,
            downloads: host.downloads(),
            pool: Arc::new(pool(host, options)),
            parameters,
            is_private: options.is_private,
            server_options,
            preload,
        };
        Ok((parts, backend))
    }

    /// All routes.
    pub(crate) fn router(
        &self,
        host: &Host,
        backend: Arc<dyn Backend>,
        owner: Owner,
        started: Instant,
        shut_down: Arc<dyn Fn() + Send + Sync>,
    ) -> Router {
        let files = Arc::new(Files::new(
            host.library.clone(),
            self.downloads.clone(),
            backend.clone(),
        ));
        let models = Arc::new(Models {
            backend: backend.clone(),
            catalog: self.names.clone(),
            library: host.library.clone(),
            files: files.clone(),
            aliases: host.aliases.clone(),
            settings: host.live.clone(),
            activity: self.activity.clone(),
            events: self.events.clone(),
            model_types: macmlx_models::model_types().collect(),
            encoder_types: macmlx_models::encoder_types().collect(),
            fit: self.fit(host),
            traits: TraitsCache::default(),
        });
        let conversations = Arc::new(ConversationSources::new(
            Arc::new(Conversations::new(host.home.conversations())),
            self.events.clone(),
        ));
        let approvals = Arc::new(Approvals::new(self.pool.policies().clone()));
        let control = macmlx_control::router(Control {
            token: self.control_token.clone(),
            status: Arc::new(StatusSources {
                backend: backend.clone(),
                catalog: self.names.clone(),
                activity: self.activity.clone(),
                door: self.door.clone(),
                machine: self.machine.clone(),
                models: host.models(),
                home: host.home.root().to_path_buf(),
                owner: match owner {
                    Owner::Cli => status::Owner::Cli,
                    Owner::Gui => status::Owner::Gui,
                },
                started,
                shut_down,
            }),
            door: self.door.clone(),
            events: self.events.clone(),
            hub: Arc::new(hub::HubSources {
                connection: host.hub(),
                models: models.clone(),
            }),
            downloads: self.downloads.clone(),
            models,
            settings: Arc::new(SettingsSources {
                live: host.live.clone(),
                hf_token: host.hf_token.clone(),
            }),
            keys: Arc::new(Keys {
                keys: host.api_keys.clone(),
                events: self.events.clone(),
            }),
            logs: host.logs.clone(),
            mcp: self.pool.clone(),
            conversations: conversations.clone(),
            chat: Arc::new(Chat {
                conversations,
                backend: Arc::new(ToolLoop::new(
                    backend.clone(),
                    self.pool.clone(),
                    approvals.clone(),
                )),
                catalog: self.names.clone(),
                parameters: self.parameters.clone(),
                pool: self.pool.clone(),
                approvals,
            }),
            parameters: Arc::new(ParameterSources {
                folder: self.parameters.clone(),
                library: host.library.clone(),
                events: self.events.clone(),
            }),
        });
        macmlx_server::router(
            backend,
            self.names.clone(),
            files,
            control.merge(ui::routes()),
            self.server_options.clone(),
        )
    }

    /// What the door leads to.
    pub(crate) fn behind(&self, router: Router, backend: Arc<dyn Backend>) -> Behind {
        Behind {
            router,
            backend,
            preload: self.preload.clone(),
        }
    }

    /// Ends what works by itself: servers of tools and downloads, whose state is saved.
    pub(crate) async fn end(&self) {
        tokio::join!(self.pool.stop(), self.downloads.close());
    }

    fn fit(&self, host: &Host) -> macmlx_fit::Machine {
        engine::machine(self.machine.memory_total_bytes(), &host.settings)
    }
}

/// Tells everyone who watches what becomes of the parts, until the tasks are aborted.
pub(crate) fn forward(parts: &Parts, host: &Host) -> Vec<AbortHandle> {
    let events = parts.events.clone();
    host.live
        .watch(move |_| events.publish(Event::SettingsChanged));
    let events = parts.events.clone();
    host.logs.watch(move |entry| {
        events.publish(Event::Log {
            entry: entry.clone(),
        });
    });
    let (activity, events) = (parts.activity.clone(), parts.events.clone());
    let throughput = tokio::spawn(async move { activity.tell(&events).await });
    let (pool, events) = (parts.pool.clone(), parts.events.clone());
    let servers = tokio::spawn(async move { mcp::forward(&pool, &events).await });
    if !parts.is_private {
        let interrupted = parts.downloads.clone();
        tokio::spawn(async move { interrupted.resume_interrupted().await });
    }
    let jobs = tokio::spawn(downloads::announce(
        parts.downloads.clone(),
        parts.events.clone(),
    ));
    [throughput, servers, jobs]
        .iter()
        .map(JoinHandle::abort_handle)
        .collect()
}

/// The model to load first. One that the command line names must be there; one that the
/// settings name may be gone by now.
fn preload(names: &Names, options: &AppOptions) -> anyhow::Result<Option<Arc<ModelCard>>> {
    let Some(reference) = names.default_model() else {
        return Ok(None);
    };
    match names.find(&reference) {
        Ok(card) => Ok(Some(card)),
        Err(error) if options.model.is_some() => Err(error.into()),
        Err(error) => {
            tracing::warn!(model = reference, %error, "the default model is not loaded");
            Ok(None)
        }
    }
}

/// Makes the server's options: which hosts, origins and keys it takes.
fn server_options(host: &Host, options: &AppOptions, token: &str) -> anyhow::Result<Options> {
    let own_key = match &options.api_key {
        _ if options.is_private => Some(token),
        Some(key) => Some(key.as_str()).filter(|key| !key.is_empty()),
        None => None,
    };
    let more_api_keys: Option<Arc<dyn ApiKeySource>> = if options.is_private {
        None
    } else {
        // A list that cannot be read ends the start: it must not open the server.
        host.api_keys.list()?;
        let settings = options.api_key.is_none().then(|| host.live.clone());
        let keys = LiveKeys {
            named: host.api_keys.clone(),
            settings,
        };
        Some(Arc::new(keys))
    };
    Ok(Options {
        api_keys: own_key.map(ApiKey::new).into_iter().collect(),
        more_api_keys,
        // The owner's own tools need no second secret.
        owner_key: Some(ApiKey::new(token)),
        own_names: own_name().into_iter().collect(),
        visitors: Some(Arc::new(LiveVisitors {
            settings: host.live.clone(),
            hosts: options.allowed_hosts.clone(),
            origins: options.allowed_origins.clone(),
        })),
        front_page: Some(ui::front_page),
        ..Options::default()
    })
}

/// What answers.
#[cfg_attr(
    not(feature = "playback"),
    expect(clippy::unnecessary_wraps, reason = "a script may be unreadable")
)]
fn answering(
    host: &Host,
    options: &AppOptions,
    time_to_live: TimeToLive,
) -> anyhow::Result<Arc<dyn Backend>> {
    #[cfg(feature = "playback")]
    if let Some(path) = &options.playback {
        let script = macmlx_playback::Script::read(path)
            .with_context(|| format!("cannot play {}", path.display()))?;
        let playback = macmlx_playback::Playback::new(script, time_to_live);
        return Ok(Arc::new(playback));
    }
    let _ = options;
    Ok(Arc::new(host.engine(time_to_live)))
}

/// Parameters of models. Aliases that older versions kept there become names, except for a command
/// of its own, which changes no settings.
fn parameters(host: &Host, options: &AppOptions) -> Arc<ModelParametersFolder> {
    let folder = ModelParametersFolder::new(&host.home, host.aliases.clone());
    if !options.is_private
        && let Err(error) = folder.import_aliases()
    {
        tracing::warn!(%error, "aliases of older versions are not known");
    }
    Arc::new(folder)
}

/// The servers of mcp.json. A command of its own runs none.
fn pool(host: &Host, options: &AppOptions) -> Pool {
    let home = if options.is_private {
        Home::at(host.home.root().join("none"))
    } else {
        host.home.clone()
    };
    Pool::start(PoolSetup {
        servers: Arc::new(McpServers::new(&home, &host.environment)),
        policies: Arc::new(ToolPolicies::new(&host.home)),
        shell: Arc::new(LoginShell::new(&host.environment)),
    })
}
