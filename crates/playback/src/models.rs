//! The models that are played: their tokenizers and templates, and which of them count as loaded.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use macmlx_chat::ChatModel;
use macmlx_inference::{InferenceError, KeepAlive, LoadedModel, ModelCard, TimeToLive};
use parking_lot::Mutex;

/// A model without weights.
#[derive(Debug)]
pub(crate) struct PlayedModel {
    pub(crate) card: ModelCard,
    pub(crate) chat: ChatModel,
}

/// All models of a script. There is no memory to free, so a model whose time is over goes when the
/// list is read.
pub(crate) struct Models {
    time_to_live: TimeToLive,
    known: Mutex<HashMap<String, Arc<PlayedModel>>>,
    loaded: Arc<Mutex<BTreeMap<String, Loaded>>>,
}

impl std::fmt::Debug for Models {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Models")
            .field("known", &self.known)
            .field("loaded", &self.loaded)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Loaded {
    size_bytes: u64,
    keep_alive: Option<KeepAlive>,
    active_requests: u32,
    /// When it was loaded or its last request ended.
    last_used: Instant,
}

/// Counts a request as running while it lives.
#[derive(Debug)]
pub(crate) struct Running {
    loaded: Arc<Mutex<BTreeMap<String, Loaded>>>,
    model: String,
}

impl Models {
    pub(crate) fn new(time_to_live: TimeToLive) -> Self {
        Self {
            time_to_live,
            known: Mutex::default(),
            loaded: Arc::default(),
        }
    }

    /// The model of a card; its folder is read again when it has changed.
    pub(crate) fn get_blocking(
        &self,
        card: &ModelCard,
    ) -> Result<Arc<PlayedModel>, InferenceError> {
        let mut known = self.known.lock();
        if let Some(model) = known.get(&card.id).filter(|model| model.card == *card) {
            return Ok(model.clone());
        }
        let model = Arc::new(PlayedModel {
            chat: ChatModel::load(&card.path, &card.id)?,
            card: card.clone(),
        });
        known.insert(card.id.clone(), model.clone());
        Ok(model)
    }

    pub(crate) fn load(&self, card: &ModelCard) {
        self.loaded
            .lock()
            .entry(card.id.clone())
            .or_insert_with(|| Loaded {
                size_bytes: card.size_bytes,
                keep_alive: None,
                active_requests: 0,
                last_used: Instant::now(),
            });
    }

    /// Loads the model for a request.
    pub(crate) fn run(&self, card: &ModelCard) -> Running {
        self.load(card);
        if let Some(model) = self.loaded.lock().get_mut(&card.id) {
            model.active_requests += 1;
        }
        Running {
            loaded: self.loaded.clone(),
            model: card.id.clone(),
        }
    }

    /// Whether the model was loaded.
    pub(crate) fn unload(&self, id: &str) -> bool {
        self.loaded.lock().remove(id).is_some()
    }

    pub(crate) fn keep(&self, id: &str, keep_alive: KeepAlive) {
        if let Some(model) = self.loaded.lock().get_mut(id) {
            model.keep_alive = Some(keep_alive);
        }
    }

    pub(crate) fn loaded(&self) -> Vec<LoadedModel> {
        let mut loaded = self.loaded.lock();
        let idle = |model: &Loaded| match model.active_requests {
            0 => model.last_used.elapsed(),
            _ => Duration::ZERO,
        };
        let expires_in = |id: &str, model: &Loaded| {
            let after_use = KeepAlive::after_use(model.keep_alive, (self.time_to_live)(id));
            after_use.map(|after_use| after_use.saturating_sub(idle(model)))
        };
        loaded.retain(|id, model| {
            model.active_requests > 0 || expires_in(id, model) != Some(Duration::ZERO)
        });
        loaded
            .iter()
            .map(|(id, model)| LoadedModel {
                id: id.clone(),
                memory_bytes: model.size_bytes,
                active_requests: model.active_requests,
                idle: idle(model),
                expires_in: expires_in(id, model),
                weights: "none: answers are played".into(),
            })
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(model) = self.loaded.lock().get_mut(&self.model) {
            model.active_requests = model.active_requests.saturating_sub(1);
            model.last_used = Instant::now();
        }
    }
}
