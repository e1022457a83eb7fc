//! `SmolLM3`: Llama, but in some layers queries and keys carry no position.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Architecture, llama, llama::Llama};
use crate::{ModelError, Result, weights::Weights};

#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    /// For each layer 1 where it rotates, 0 where not; where it is missing, every so many layers one
    /// does not.
    no_rope_layers: Option<Vec<u8>>,
    no_rope_layer_interval: usize,
    #[serde(flatten)]
    llama: llama::Config,
}

impl Config {
    /// Whether each layer rotates.
    fn rotates(&self) -> Result<Vec<bool>> {
        let layers = self.llama.num_hidden_layers;
        match &self.no_rope_layers {
            Some(told) if told.len() != layers => Err(ModelError::unsupported(
                "no_rope_layers",
                format!("{} entries for {layers} layers", told.len()),
            )),
            Some(told) => Ok(told.iter().map(|rotates| *rotates != 0).collect()),
            None => Ok((1..=layers)
                .map(|layer| !layer.is_multiple_of(self.no_rope_layer_interval))
                .collect()),
        }
    }
}

/// The layout: [`Llama`] with layers that do not rotate.
#[derive(Debug)]
pub(crate) struct SmolLm3;

impl Architecture for SmolLm3 {
    type Config = Config;
    type Model = Llama;
    const MODEL_TYPES: &'static [&'static str] = &["smollm3"];

    fn left_out() -> Value {
        json!({"no_rope_layer_interval": 4})
    }

    fn build(config: Config, weights: &mut Weights) -> Result<Llama> {
        let rotates = config.rotates()?;
        Llama::load(&config.llama, rotates, weights)
    }
}
