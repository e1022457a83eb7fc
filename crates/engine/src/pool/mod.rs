//! Models in memory: the one place that loads, keeps and drops weights.
//!
//! Invariants:
//! - At most one model is in memory; the scheduler swaps only when nothing runs.
//! - [`Residents`] says what is in memory to other threads; only the pool writes it.

mod residents;

use std::sync::Arc;

use macmlx_inference::{InferenceError, ModelCard};
use macmlx_models::{LoadOptions, Model};

use crate::{options::EngineOptions, thread::caught};

pub(crate) use residents::{ActiveTicket, Residents, WaitTicket};

/// Weights ready to run. Lives on the MLX thread.
pub(crate) struct Weights {
    pub(crate) model: Box<dyn Model>,
    pub(crate) memory_bytes: u64,
    /// How they are held, for a person.
    pub(crate) description: String,
}

/// Turns a card into weights, on the MLX thread.
pub(crate) type Loader = Box<dyn Fn(&ModelCard) -> Result<Weights, InferenceError> + Send>;

/// The models in memory.
pub(crate) struct Pool {
    loader: Loader,
    current: Option<(ModelCard, Weights)>,
    residents: Arc<Residents>,
}

impl Pool {
    pub(crate) fn new(loader: Loader, residents: Arc<Residents>) -> Self {
        Self {
            loader,
            current: None,
            residents,
        }
    }

    /// Whether exactly this model, with these files, is in memory.
    pub(crate) fn holds(&self, card: &ModelCard) -> bool {
        self.current.as_ref().is_some_and(|(held, _)| held == card)
    }

    /// The id of the model in memory.
    pub(crate) fn held_id(&self) -> Option<&str> {
        self.current.as_ref().map(|(card, _)| card.id.as_str())
    }

    /// The model in memory.
    pub(crate) fn model(&self) -> Option<&dyn Model> {
        self.current
            .as_ref()
            .map(|(_, weights)| weights.model.as_ref())
    }

    /// Loads a model in place of the one in memory, which is dropped first: two do not fit where
    /// one was made to fit.
    pub(crate) fn load(&mut self, card: &ModelCard) -> Result<(), InferenceError> {
        self.unload();
        let weights = caught(|| (self.loader)(card))
            .unwrap_or_else(|message| Err(InferenceError::Engine { message }))?;
        self.residents.set(
            card.id.clone(),
            weights.memory_bytes,
            weights.description.clone(),
        );
        self.current = Some((card.clone(), weights));
        Ok(())
    }

    /// Drops the model in memory; whether there was one.
    pub(crate) fn unload(&mut self) -> bool {
        let Some((card, weights)) = self.current.take() else {
            return false;
        };
        drop(weights);
        self.residents.clear();
        tracing::info!(model = card.id, "model unloaded");
        if let Err(error) = mlx_rs::memory::clear_cache() {
            tracing::warn!(%error, "MLX kept its buffers");
        }
        true
    }
}

/// Loads with `macmlx-models`.
pub(crate) fn loader(options: &EngineOptions) -> Loader {
    let mut load_options = LoadOptions::default();
    if let Some(budget) = options.dequantize_budget_bytes {
        load_options.dequantize_budget_bytes = budget;
    }
    Box::new(move |card| {
        let started = std::time::Instant::now();
        let loaded = macmlx_models::load(&card.path, &load_options).map_err(|error| {
            InferenceError::ModelLoad {
                model: card.id.clone(),
                reason: error.to_string(),
            }
        })?;
        let weights = Weights {
            memory_bytes: loaded.facts.weights_bytes,
            description: loaded.facts.weights,
            model: loaded.model,
        };
        tracing::info!(
            model = card.id,
            weights = weights.description,
            memory_bytes = weights.memory_bytes,
            seconds = started.elapsed().as_secs_f32(),
            "model loaded"
        );
        Ok(weights)
    })
}
