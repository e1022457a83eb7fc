//! What every command starts from: home, settings and the models.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context;
use macmlx_engine::Engine;
use macmlx_inference::{Catalog, InferenceError, ModelCard, ModelTask, TimeToLive};
use macmlx_settings::{
    Aliases, ApiKeys, Environment, HfToken, Home, LiveSettings, Loaded, Settings,
};
use macmlx_store::{
    downloads::{self, Downloads, Places},
    hub::{Access, Connection},
    logs::Logs,
    models::{Encoders, Library},
};

use crate::{Names, engine, names::RunNames};

/// An opened home. Nothing runs yet.
#[derive(Debug, Clone)]
pub struct Host {
    pub environment: Environment,
    pub home: Home,
    /// The settings at the start, with the changes of the command line.
    pub settings: Settings,
    /// The settings as they are now.
    pub live: Arc<LiveSettings>,
    pub hf_token: Arc<HfToken>,
    /// The named keys of clients.
    pub api_keys: Arc<ApiKeys>,
    pub logs: Arc<Logs>,
    pub library: Arc<Library>,
    /// Other names for the library's models.
    pub aliases: Arc<Aliases>,
    /// What was wrong with the settings, for a person.
    pub warnings: Vec<String>,
}

impl Host {
    /// Finds the home and reads the settings.
    pub fn open(environment: Environment) -> anyhow::Result<Self> {
        let home = Home::new(&environment)?;
        let Loaded { settings, warnings } =
            macmlx_settings::load(&home.settings_file()).context("cannot read the settings")?;
        let library = Library::new(home.models(&settings)).with_encoders(Encoders {
            is_encoder: |model_type| {
                let generates = macmlx_models::model_types().any(|known| known == model_type);
                !generates && macmlx_models::encoder_types().any(|known| known == model_type)
            },
            positions: macmlx_models::encoder_positions,
        });
        let library = Arc::new(library);
        Ok(Self {
            aliases: Arc::new(Aliases::new(&home)),
            live: Arc::new(LiveSettings::new(&home)),
            hf_token: Arc::new(HfToken::new(&home, environment.hf_token.clone())),
            api_keys: Arc::new(ApiKeys::new(&home)),
            logs: Arc::default(),
            environment,
            home,
            settings,
            library,
            warnings,
        })
    }

    /// An engine with the settings' limits; it loads nothing yet.
    pub(crate) fn engine(&self, time_to_live: TimeToLive) -> Engine {
        Engine::new(engine::options(&self.settings), time_to_live)
    }

    /// The models under every name the settings give them.
    pub fn names(&self) -> Names {
        self.names_of(RunNames::default(), u64::MAX)
    }

    /// Does the same as [`Self::names`], with the choices of one run on a machine with that much
    /// memory.
    pub(crate) fn names_of(&self, run: RunNames, memory_bytes: u64) -> Names {
        let limit = engine::options(&self.settings).memory_limit_bytes;
        let memory_bytes = limit.map_or(memory_bytes, |limit| limit.min(memory_bytes));
        Names::new(
            self.library.clone(),
            self.aliases.clone(),
            self.live.clone(),
            run,
            move |card| engine::can_run(card, memory_bytes),
        )
    }

    /// The hub that the environment names, or the settings of the moment.
    pub fn hub(&self) -> Arc<Connection> {
        let endpoint = self.environment.hf_endpoint.clone();
        let (live, token) = (self.live.clone(), self.hf_token.clone());
        Arc::new(Connection::new(move || Access {
            endpoint: endpoint
                .clone()
                .unwrap_or_else(|| live.get().hf_endpoint.clone()),
            token: token.get(),
        }))
    }

    /// The downloads into this home. Blocks.
    pub fn downloads(&self) -> Downloads {
        let places = Places {
            models: self.models(),
            downloads: self.home.downloads(),
        };
        Downloads::open(places, self.hub(), downloads::Options::default())
    }

    /// Returns the id of the usable model that a reference means. Unknown names mean no model.
    pub fn resolve(&self, reference: &str) -> Result<String, InferenceError> {
        Ok(self.names().find(reference)?.id.clone())
    }

    /// Does the same as [`Self::resolve`], for a model that must be for this task.
    pub fn resolve_for(&self, reference: &str, task: ModelTask) -> Result<String, InferenceError> {
        let card = self.names().find(reference)?;
        card.expect(task)?;
        Ok(card.id.clone())
    }

    /// How a model's weights will be held once loaded, in words for a person. Reads the model's
    /// files.
    pub fn weights_plan(&self, card: &ModelCard) -> String {
        let description = macmlx_store::models::describe(card);
        engine::weights_plan(&self.settings, card, &description.config)
    }

    /// Where models are.
    pub fn models(&self) -> PathBuf {
        self.library.root().to_path_buf()
    }
}
