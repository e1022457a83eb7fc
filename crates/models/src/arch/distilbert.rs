//! `DistilBERT`: BERT without segments and pooler.

use mlx_rs::Array;
use serde::Deserialize;

use super::EncoderArchitecture;
use crate::{
    Result,
    compute::Compute,
    encoder::{Batch, EncoderSizes, EncoderText, Pool, Rows, Scorer},
    layers::{
        Activation, Embedding, LayerNorm, Linear, PostNormBlock, PostNormNames, PostNormShape,
    },
    weights::Weights,
};

#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    dim: i32,
    n_layers: usize,
    n_heads: i32,
    hidden_dim: i32,
    activation: String,
    vocab_size: i32,
    max_position_embeddings: i32,
}

/// The same for all checkpoints, not in config.json.
const EPS: f32 = 1e-12;

const NAMES: PostNormNames = PostNormNames {
    qkv: ["attention.q_lin", "attention.k_lin", "attention.v_lin"],
    attention_output: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    norm: "output_layer_norm",
};

/// Learned positions, then post-norm blocks.
#[derive(Debug)]
pub(crate) struct DistilBert {
    words: Embedding,
    /// `[positions, hidden]`; computed by sines or learned, the checkpoint holds them.
    positions: Array,
    norm: LayerNorm,
    layers: Vec<PostNormBlock>,
    sizes: EncoderSizes,
}

impl EncoderArchitecture for DistilBert {
    type Config = Config;
    const MODEL_TYPES: &'static [&'static str] = &["distilbert"];
    const POOL: Pool = Pool::Mean;
    const UNUSED: &'static [&'static str] = &[
        "embeddings.position_ids",
        "vocab_transform.",
        "vocab_layer_norm.",
        "vocab_projector.",
    ];

    fn positions(config: &Config) -> Option<usize> {
        usize::try_from(config.max_position_embeddings).ok()
    }

    fn build(config: &Config, weights: &mut Weights) -> Result<Self> {
        let root = weights.root(&["distilbert.", ""], "embeddings.word_embeddings.weight");
        let (hidden, vocab, positions) = (
            config.dim,
            config.vocab_size,
            config.max_position_embeddings,
        );
        let shape = PostNormShape {
            hidden,
            intermediate: config.hidden_dim,
            heads: config.n_heads,
            eps: EPS,
            activation: Activation::named("activation", &config.activation, weights.compute)?,
        };
        let layer = |index| {
            let scope = &mut weights.at(&format!("{root}transformer.layer.{index}"));
            PostNormBlock::load(shape, &NAMES, scope)
        };
        let layers = (0..config.n_layers).map(layer).collect::<Result<_>>()?;
        let scope = &mut weights.at(&format!("{root}embeddings"));
        Ok(Self {
            words: Embedding::load(&mut scope.at("word_embeddings"), vocab, hidden)?,
            positions: scope.at("position_embeddings").dense(positions, hidden)?,
            norm: LayerNorm::load(&mut scope.at("LayerNorm"), hidden, EPS, true)?,
            layers,
            sizes: EncoderSizes { hidden, vocab },
        })
    }

    fn build_scorer(config: &Config, weights: &mut Weights) -> Result<Scorer> {
        let hidden = config.dim;
        let dense = Linear::load(&mut weights.at("pre_classifier"), hidden, hidden, true)?;
        let scorer = Scorer::load(&mut weights.at("classifier"), hidden, Pool::First, true)?;
        Ok(scorer.with_dense(dense, Activation::Relu))
    }

    fn forward(&self, texts: &[EncoderText<'_>], compute: Compute) -> Result<Rows> {
        let batch = Batch::new(texts, compute);
        let words = self.words.forward(&batch.tokens)?;
        let mut h = self
            .norm
            .forward(&words.add(batch.positions(&self.positions, 0)?)?)?;
        let masks = batch.masks(None, h.dtype())?;
        for layer in &self.layers {
            h = layer.forward(&h, &batch, &masks)?;
        }
        Ok(batch.rows(h))
    }

    fn sizes(&self) -> EncoderSizes {
        self.sizes
    }
}
