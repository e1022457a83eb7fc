//! Encoders in memory, beside the model that generates.

use std::sync::Arc;

use macmlx_inference::{InferenceError, ModelCard};
use macmlx_models::Encoder;

use super::{MemoryLimit, Residents, Weights, clear_buffers, load_caught};
use crate::profile::Profile;

/// Turns a profile into weights, on the MLX thread.
pub(crate) type EncoderLoader =
    Box<dyn Fn(&Profile) -> Result<Weights<dyn Encoder>, InferenceError> + Send>;

/// The encoders in memory; the least recently used goes when there is one too many.
pub(crate) struct Encoders {
    loader: EncoderLoader,
    /// Least recently used first.
    held: Vec<(ModelCard, Weights<dyn Encoder>)>,
    residents: Arc<Residents>,
    limit: MemoryLimit,
}

impl Encoders {
    /// A search wants an embedder and a reranker; one more lets either be changed.
    pub(crate) const MAX: usize = 3;

    pub(super) fn new(
        loader: EncoderLoader,
        residents: Arc<Residents>,
        limit: MemoryLimit,
    ) -> Self {
        Self {
            loader,
            held: Vec::new(),
            residents,
            limit,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Bytes of all encoders in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.held
            .iter()
            .map(|(_, weights)| weights.memory_bytes)
            .sum()
    }

    /// Drops the least recently used encoder that has no request and is not `wanted`; whether there
    /// was one.
    pub(super) fn unload_idle(&mut self, wanted: &[ModelCard]) -> bool {
        let is_idle =
            |card: &ModelCard| self.residents.active(&card.id) == 0 && !wanted.contains(card);
        let idle = self.held.iter().find(|(card, _)| is_idle(card));
        let Some(id) = idle.map(|(card, _)| card.id.clone()) else {
            return false;
        };
        self.unload(&id)
    }

    /// Whether exactly this model, with these files, is in memory.
    pub(crate) fn holds(&self, card: &ModelCard) -> bool {
        self.held.iter().any(|(held, _)| held == card)
    }

    pub(crate) fn holds_id(&self, id: &str) -> bool {
        self.held.iter().any(|(held, _)| held.id == id)
    }

    /// Whether the encoder, if it is in memory, pads texts.
    pub(crate) fn pads(&self, card: &ModelCard) -> bool {
        let mut held = self.held.iter();
        held.any(|(held, weights)| held == card && weights.model.pads())
    }

    /// The encoder, which is now the last to go.
    pub(crate) fn get(&mut self, card: &ModelCard) -> Option<&dyn Encoder> {
        let index = self.held.iter().position(|(held, _)| held == card)?;
        self.held[index..].rotate_left(1);
        self.held.last().map(|(_, weights)| &*weights.model)
    }

    /// Loads an encoder. One with the same id, whose files have changed, goes first, and where there
    /// are too many the least recently used that is not `wanted`.
    pub(crate) fn load(
        &mut self,
        profile: &Profile,
        wanted: &[ModelCard],
    ) -> Result<(), InferenceError> {
        self.unload(&profile.card.id);
        while self.held.len() >= Self::MAX {
            let free = self
                .held
                .iter()
                .position(|(held, _)| !wanted.contains(held));
            let id = self.held[free.unwrap_or(0)].0.id.clone();
            self.unload(&id);
        }
        let card = &profile.card;
        let (limit, residents) = (self.limit, self.residents.clone());
        let check = |bytes| limit.check(card, bytes, residents.others_bytes(&card.id));
        // Nothing makes room for what does not fit alone.
        limit.check(card, card.size_bytes, 0)?;
        while let Err(error) = check(card.size_bytes) {
            if !self.unload_idle(wanted) {
                return Err(error);
            }
        }
        let weights = load_caught(|| (self.loader)(profile))?;
        if let Err(error) = check(weights.memory_bytes) {
            drop(weights);
            clear_buffers();
            return Err(error);
        }
        self.residents.add(&card.id, &weights);
        self.held.push((profile.card.clone(), weights));
        Ok(())
    }

    /// Drops an encoder; whether it was there.
    pub(crate) fn unload(&mut self, id: &str) -> bool {
        let Some(index) = self.held.iter().position(|(held, _)| held.id == id) else {
            return false;
        };
        drop(self.held.remove(index));
        self.residents.remove(id);
        tracing::info!(model = id, "encoder unloaded");
        clear_buffers();
        true
    }

    pub(super) fn clear(&mut self) {
        while let Some((card, _)) = self.held.last() {
            let id = card.id.clone();
            self.unload(&id);
        }
    }
}
