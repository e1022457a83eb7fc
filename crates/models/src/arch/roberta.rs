//! `RoBERTa` and `XLM-RoBERTa`: BERT whose positions begin after the padding token's id.

use super::{
    EncoderArchitecture,
    bert::{Config, Trunk, limit},
};
use crate::{
    Result,
    compute::Compute,
    encoder::{EncoderSizes, EncoderText, Pool, Rows, Scorer},
    layers::{Activation, Linear},
    weights::Weights,
};

/// `RoBERTa`.
#[derive(Debug)]
pub(crate) struct Roberta(Trunk);

impl EncoderArchitecture for Roberta {
    type Config = Config;
    const MODEL_TYPES: &'static [&'static str] = &["roberta", "xlm-roberta", "camembert"];
    const POOL: Pool = Pool::Mean;
    const UNUSED: &'static [&'static str] = &["embeddings.position_ids", "pooler.", "lm_head."];

    fn positions(config: &Config) -> Option<usize> {
        limit(config, config.pad_token_id + 1)
    }

    fn build(config: &Config, weights: &mut Weights) -> Result<Self> {
        let first_position = config.pad_token_id + 1;
        Ok(Self(Trunk::load(
            config,
            weights,
            &["roberta.", ""],
            first_position,
        )?))
    }

    fn build_scorer(config: &Config, weights: &mut Weights) -> Result<Scorer> {
        let hidden = config.hidden_size;
        let dense = &mut weights.at("classifier.dense");
        let dense = Linear::load(dense, hidden, hidden, true)?;
        let output = &mut weights.at("classifier.out_proj");
        Ok(Scorer::load(output, hidden, Pool::First, true)?.with_dense(dense, Activation::Tanh))
    }

    fn forward(&self, texts: &[EncoderText<'_>], compute: Compute) -> Result<Rows> {
        self.0.forward(texts, compute)
    }

    fn sizes(&self) -> EncoderSizes {
        self.0.sizes()
    }
}
