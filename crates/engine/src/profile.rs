//! What is known of a model apart from its weights: tokenizer, chat template, generation defaults.
//! Lives on ordinary threads.

use std::{path::Path, sync::Arc};

use macmlx_chat::{ChatModel, EncoderTokenizer};
use macmlx_inference::{InferenceError, ModelCard, ModelTask};
use parking_lot::Mutex;
use serde_json::Value;

use crate::sampling::{GenerationDefaults, TokenText};

/// Tokenizers of this many models are kept; the largest take some tens of megabytes.
const KEPT: usize = 4;

/// A model's card and everything needed to turn a request into tokens and tokens into text.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) card: ModelCard,
    pub(crate) chat: ChatModel,
    /// The tokenizer of a model that does not generate.
    pub(crate) encoder: Option<EncoderTokenizer>,
    pub(crate) defaults: GenerationDefaults,
    /// Size of the model's vocabulary, which may be padded beyond the tokenizer's.
    pub(crate) vocab_size: u32,
    /// Tokens that fit into the model's context.
    pub(crate) context_length: u32,
}

impl Profile {
    /// Reads the model's folder; takes a second for the largest tokenizers.
    pub(crate) fn load(card: ModelCard) -> Result<Self, InferenceError> {
        let chat = ChatModel::load(&card.path, &card.id)?;
        let defaults = read_json(&card, "generation_config.json")?.unwrap_or_default();
        let config: Value = read_json(&card, "config.json")?.unwrap_or_default();
        let vocab_size = vocab_size(&config).unwrap_or(chat.tokenizer().vocab_size() as u32);
        let context_length = card
            .context_length
            .or_else(|| macmlx_models::context_length(&config))
            .unwrap_or(u32::MAX);
        let encoder = match card.task {
            ModelTask::Generate => None,
            task @ (ModelTask::Embed | ModelTask::Rerank) => Some(EncoderTokenizer::load(
                &card.path,
                &card.id,
                task,
                &chat,
                context_length,
            )?),
        };
        Ok(Self {
            card,
            chat,
            encoder,
            defaults,
            vocab_size,
            context_length,
        })
    }

    /// Bytes of a token, for those who only hold its id.
    pub(crate) fn token_text(&self) -> TokenText {
        let tokenizer = self.chat.tokenizer().clone();
        Arc::new(move |token| tokenizer.token_bytes(token).to_vec())
    }
}

/// Rows of the logits. Multimodal models keep their number a level deeper.
fn vocab_size(config: &Value) -> Option<u32> {
    let numbers = [config, &config["text_config"]].map(|config| config["vocab_size"].as_u64());
    u32::try_from(numbers.into_iter().flatten().next()?).ok()
}

fn read_json<T: serde::de::DeserializeOwned>(
    card: &ModelCard,
    name: &str,
) -> Result<Option<T>, InferenceError> {
    let unusable = |reason: String| InferenceError::ModelLoad {
        model: card.id.clone(),
        reason,
    };
    let path: &Path = &card.path.join(name);
    match std::fs::read(path) {
        Ok(bytes) => macmlx_json::read_python(&bytes)
            .map(Some)
            .map_err(|error| unusable(format!("{name} is not valid: {error}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(format!("cannot read {name}: {error}"))),
    }
}

/// The profiles used last.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    /// Least recently used first.
    kept: Mutex<Vec<Arc<Place>>>,
}

/// Where the profile of one card is, or will be.
#[derive(Debug)]
struct Place {
    card: ModelCard,
    profile: Mutex<Option<Arc<Profile>>>,
}

impl Profiles {
    /// The card's profile, read again when the model's files have changed. One that takes long to read
    /// holds up those who want the same, and nobody else.
    pub(crate) fn get_blocking(&self, card: &ModelCard) -> Result<Arc<Profile>, InferenceError> {
        let place = self.place(card);
        let mut profile = place.profile.lock();
        if let Some(profile) = &*profile {
            return Ok(profile.clone());
        }
        let read = Arc::new(Profile::load(card.clone())?);
        *profile = Some(read.clone());
        Ok(read)
    }

    fn place(&self, card: &ModelCard) -> Arc<Place> {
        let mut kept = self.kept.lock();
        let index = kept.iter().position(|place| place.card.id == card.id);
        let found = index.map(|index| kept.remove(index));
        let place = found
            .filter(|place| place.card == *card)
            .unwrap_or_else(|| {
                Arc::new(Place {
                    card: card.clone(),
                    profile: Mutex::default(),
                })
            });
        kept.push(place.clone());
        if kept.len() > KEPT {
            kept.remove(0);
        }
        place
    }
}
