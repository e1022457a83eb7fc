//! Gemma 3 as it is published with eyes: the text model alone, which takes no images here.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Architecture, gemma3_text, gemma3_text::Gemma3Text};
use crate::{Result, weights::Weights};

#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    /// Rows of the embeddings, whatever `text_config` says.
    vocab_size: i32,
    text_config: gemma3_text::Config,
}

/// The layout: [`Gemma3Text`] below a name, beside what sees.
#[derive(Debug)]
pub(crate) struct Gemma3;

impl Architecture for Gemma3 {
    type Config = Config;
    type Model = Gemma3Text;
    const MODEL_TYPES: &'static [&'static str] = &["gemma3"];

    fn left_out() -> Value {
        let mut text = json!({"num_attention_heads": 8, "num_key_value_heads": 4});
        macmlx_fit::fill_in(&mut text, &Gemma3Text::left_out());
        json!({"vocab_size": 262_208, "text_config": text})
    }

    fn build(config: Config, weights: &mut Weights) -> Result<Gemma3Text> {
        let sees = ["vision_tower.", "multi_modal_projector."];
        weights.ignore(|key| sees.iter().any(|part| key.starts_with(part)));
        weights.enter("language_model.");
        let mut text = config.text_config;
        text.vocab_size = config.vocab_size;
        Gemma3Text::build(text, weights)
    }
}
