//! What every command starts from: home, settings and the models.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context;
use macmlx_engine::Engine;
use macmlx_inference::{InferenceError, ModelCard};
use macmlx_settings::{Aliases, ApiKeys, Environment, Home, Loaded, Settings};
use macmlx_store::{
    hub::{self, Hub},
    models::Library,
};

use crate::{Names, engine};

/// An opened home. Nothing runs yet.
#[derive(Debug, Clone)]
pub struct Host {
    pub environment: Environment,
    pub home: Home,
    pub settings: Settings,
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
        let library = Arc::new(Library::new(home.models(&settings)));
        Ok(Self {
            environment,
            aliases: Arc::new(Aliases::new(&home)),
            home,
            settings,
            library,
            warnings,
        })
    }

    /// An engine with the settings' limits; it loads nothing yet.
    pub(crate) fn engine(&self, names: Arc<Names>) -> Engine {
        Engine::new(engine::options(&self.settings), names)
    }

    /// The models under every name the settings give them.
    pub fn names(&self) -> Names {
        Names::new(self.library.clone(), self.aliases.clone(), &self.settings)
    }

    /// The named keys of clients.
    pub fn api_keys(&self) -> ApiKeys {
        ApiKeys::new(&self.home)
    }

    /// The hub that environment and settings name.
    pub fn hub(&self) -> Result<Hub, hub::Error> {
        let endpoint = self
            .environment
            .hf_endpoint
            .as_deref()
            .unwrap_or(&self.settings.hf_endpoint);
        Hub::new(endpoint, self.environment.hf_token.as_deref())
    }

    /// The id of the usable model a reference means; names nobody here knows mean none.
    pub fn resolve(&self, reference: &str) -> Result<String, InferenceError> {
        Ok(self.names().known(reference)?.id)
    }

    /// How a model's weights will be held once loaded, in words for a person.
    pub fn weights_plan(&self, card: &ModelCard) -> String {
        engine::weights_plan(&self.settings, card)
    }

    /// Where models are.
    pub fn models(&self) -> PathBuf {
        self.library.root().to_path_buf()
    }
}
