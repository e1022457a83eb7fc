//! The models of this machine.

mod detail;
mod list;
mod memory;

use std::{collections::HashMap, sync::Arc};

use macmlx_inference::{Backend, Catalog, ModelCard, ModelFiles, ModelTask, ModelTraits};
use macmlx_settings::{Aliases, LiveSettings};
use macmlx_store::models::Library;
use parking_lot::Mutex;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Activity, Problem, events::Events};

pub use list::Model;

/// What the model routes act on.
pub struct Models {
    pub backend: Arc<dyn Backend>,
    pub catalog: Arc<dyn Catalog>,
    pub library: Arc<Library>,
    pub files: Arc<dyn ModelFiles>,
    pub aliases: Arc<Aliases>,
    pub settings: Arc<LiveSettings>,
    pub activity: Arc<Activity>,
    pub events: Arc<Events>,
    /// Every `model_type` that the engine can have generate.
    pub model_types: Vec<&'static str>,
    /// Every `model_type` that it can have embed or rerank.
    pub encoder_types: Vec<&'static str>,
    /// What models have to fit into.
    pub fit: macmlx_fit::Machine,
    pub traits: TraitsCache,
}

/// What models can do, which is read from their tokenizers once: by a model's digest, and whether
/// generic tools are on.
#[derive(Debug, Default)]
pub struct TraitsCache(Mutex<HashMap<(String, bool), ModelTraits>>);

impl std::fmt::Debug for Models {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Models")
            .field("library", &self.library)
            .finish_non_exhaustive()
    }
}

impl Models {
    /// The model of this machine that a reference names.
    async fn find(&self, reference: String) -> Result<Arc<ModelCard>, Problem> {
        let catalog = self.catalog.clone();
        Ok(tokio::task::spawn_blocking(move || catalog.find(&reference)).await??)
    }

    /// What a complete model that generates can do. One whose tokenizer cannot be read is shown all the same;
    /// loading it says what is wrong.
    async fn traits(&self, card: &ModelCard) -> ModelTraits {
        if card.task != ModelTask::Generate {
            return ModelTraits::default();
        }
        let key = (card.digest.clone(), self.settings.get().generic_tools);
        if let Some(known) = self.traits.0.lock().get(&key) {
            return known.clone();
        }
        match self.backend.traits(Arc::new(card.clone())).await {
            Ok(traits) => {
                self.traits.0.lock().insert(key, traits.clone());
                traits
            }
            Err(error) => {
                tracing::debug!(model = card.id, %error, "what it can do is unknown");
                ModelTraits::default()
            }
        }
    }
}

/// `/x/models`.
pub fn routes() -> OpenApiRouter<Arc<Models>> {
    OpenApiRouter::new()
        .routes(routes!(list::models))
        .routes(routes!(memory::load_model))
        .routes(routes!(memory::unload_model))
        .routes(routes!(detail::model, detail::delete_model))
        .routes(routes!(detail::model_fit))
}
