//! Models in memory: the one place that loads, keeps and drops weights.
//!
//! Invariants:
//! - At most one model that generates is in memory; the scheduler swaps only when nothing runs.
//! - A few encoders sit beside it; neither pushes the other out.
//! - The weights of all models together stay within the memory limit, if there is one.
//! - [`Residents`] says what is in memory to other threads; only the pool writes it.

mod encoders;
mod limit;
mod residents;

use std::{sync::Arc, time::Instant};

use macmlx_chat::EncoderTokenizer;
use macmlx_inference::{InferenceError, ModelCard};
use macmlx_models::{AnswerTokens, EncoderOptions, LoadOptions, Model, ModelError, ModelFacts};

use crate::{options::EngineOptions, thread::caught};

pub(crate) use encoders::{EncoderLoader, Encoders};
pub(crate) use limit::MemoryLimit;
pub(crate) use residents::{ActiveTicket, Residents, WaitTicket};

/// Weights ready to run. Lives on the MLX thread.
pub(crate) struct Weights<M: ?Sized = dyn Model> {
    pub(crate) model: Box<M>,
    pub(crate) memory_bytes: u64,
    /// How they are held, for a person.
    pub(crate) description: String,
}

/// Turns a card into weights, on the MLX thread.
pub(crate) type Loader = Box<dyn Fn(&ModelCard) -> Result<Weights, InferenceError> + Send>;

/// How models come into memory.
pub(crate) struct Loaders {
    pub(crate) generator: Loader,
    pub(crate) encoder: EncoderLoader,
}

/// The models in memory.
pub(crate) struct Pool {
    pub(crate) encoders: Encoders,
    loader: Loader,
    current: Option<(ModelCard, Weights)>,
    residents: Arc<Residents>,
    limit: MemoryLimit,
}

impl Pool {
    /// `limit_bytes` bounds the weights in memory, all models together.
    pub(crate) fn new(
        loaders: Loaders,
        residents: Arc<Residents>,
        limit_bytes: Option<u64>,
    ) -> Self {
        let limit = MemoryLimit(limit_bytes);
        Self {
            encoders: Encoders::new(loaders.encoder, residents.clone(), limit),
            loader: loaders.generator,
            current: None,
            residents,
            limit,
        }
    }

    pub(crate) fn residents(&self) -> &Residents {
        &self.residents
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_none() && self.encoders.is_empty()
    }

    /// Whether exactly this model, with these files, is in memory to generate.
    pub(crate) fn holds(&self, card: &ModelCard) -> bool {
        self.current.as_ref().is_some_and(|(held, _)| held == card)
    }

    /// The id of the model that generates.
    pub(crate) fn held_id(&self) -> Option<&str> {
        self.current.as_ref().map(|(card, _)| card.id.as_str())
    }

    /// The model that generates.
    pub(crate) fn model(&self) -> Option<&dyn Model> {
        self.current
            .as_ref()
            .map(|(_, weights)| weights.model.as_ref())
    }

    /// Loads a model to generate in place of the one in memory, which is dropped first: two do not
    /// fit where one was made to fit. One that exceeds the memory limit is refused; encoders that do
    /// nothing make room.
    pub(crate) fn load(&mut self, card: &ModelCard) -> Result<(), InferenceError> {
        // Nothing makes room for what does not fit alone.
        self.limit.check(card, card.size_bytes, 0)?;
        while let Err(error) = self
            .limit
            .check(card, card.size_bytes, self.encoders.bytes())
        {
            if !self.encoders.unload_idle(&[]) {
                return Err(error);
            }
        }
        self.unload();
        let weights = load_caught(|| (self.loader)(card))?;
        let others_bytes = self.residents.others_bytes(&card.id);
        if let Err(error) = self.limit.check(card, weights.memory_bytes, others_bytes) {
            drop(weights);
            clear_buffers();
            return Err(error);
        }
        self.residents.add(&card.id, &weights);
        self.current = Some((card.clone(), weights));
        Ok(())
    }

    /// Drops the model that generates; whether there was one.
    pub(crate) fn unload(&mut self) -> bool {
        let Some((card, weights)) = self.current.take() else {
            return false;
        };
        drop(weights);
        self.residents.remove(&card.id);
        tracing::info!(model = card.id, "model unloaded");
        clear_buffers();
        true
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.unload();
        self.encoders.clear();
    }
}

/// Gives the buffers of what was dropped back to the system.
fn clear_buffers() {
    if let Err(error) = mlx_rs::memory::clear_cache() {
        tracing::warn!(%error, "MLX kept its buffers");
    }
}

fn load_caught<M: ?Sized>(
    load: impl FnOnce() -> Result<Weights<M>, InferenceError>,
) -> Result<Weights<M>, InferenceError> {
    caught(load).unwrap_or_else(|message| Err(InferenceError::Engine { message }))
}

/// Loads with `macmlx-models`.
pub(crate) fn loaders(options: &EngineOptions) -> Loaders {
    let load = LoadOptions {
        dequantize_budget_bytes: options.dequantize_budget_bytes,
        ..LoadOptions::default()
    };
    Loaders {
        generator: Box::new(move |card| {
            let started = Instant::now();
            let loaded =
                macmlx_models::load(&card.path, &load).map_err(|error| unusable(card, &error))?;
            Ok(weights(card, loaded.model, loaded.facts, started))
        }),
        encoder: Box::new(move |profile| {
            let (card, started) = (&profile.card, Instant::now());
            let answers = profile.encoder.as_ref().and_then(EncoderTokenizer::answers);
            let options = EncoderOptions {
                load,
                answers: answers.map(|tokens| AnswerTokens {
                    yes: tokens.yes,
                    no: tokens.no,
                }),
            };
            let loaded = macmlx_models::load_encoder(&card.path, &options)
                .map_err(|error| unusable(card, &error))?;
            Ok(weights(card, loaded.encoder, loaded.facts, started))
        }),
    }
}

fn unusable(card: &ModelCard, error: &ModelError) -> InferenceError {
    InferenceError::ModelLoad {
        model: card.id.clone(),
        reason: error.to_string(),
    }
}

fn weights<M: ?Sized>(
    card: &ModelCard,
    model: Box<M>,
    facts: ModelFacts,
    started: Instant,
) -> Weights<M> {
    tracing::info!(
        model = card.id,
        weights = facts.weights,
        memory_bytes = facts.weights_bytes,
        seconds = started.elapsed().as_secs_f32(),
        "model loaded"
    );
    Weights {
        model,
        memory_bytes: facts.weights_bytes,
        description: facts.weights,
    }
}
