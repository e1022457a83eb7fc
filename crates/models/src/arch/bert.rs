//! BERT: learned positions, post-norm blocks, a pooler on the first token.

use mlx_rs::Array;
use serde::Deserialize;

use super::EncoderArchitecture;
use crate::{
    ModelError, Result,
    compute::Compute,
    encoder::{Batch, EncoderSizes, EncoderText, Pool, Rows, Scorer},
    layers::{
        Activation, Embedding, LayerNorm, Linear, PostNormBlock, PostNormNames, PostNormShape,
    },
    weights::Weights,
};

#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    pub(super) hidden_size: i32,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: i32,
    pub(super) intermediate_size: i32,
    pub(super) hidden_act: String,
    pub(super) layer_norm_eps: f32,
    pub(super) vocab_size: i32,
    pub(super) max_position_embeddings: i32,
    pub(super) type_vocab_size: i32,
    #[serde(default)]
    pub(super) pad_token_id: i32,
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
}

const NAMES: PostNormNames = PostNormNames {
    qkv: [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
    ],
    attention_output: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

/// What BERT and `RoBERTa` have in common.
#[derive(Debug)]
pub(super) struct Trunk {
    words: Embedding,
    /// `[positions, hidden]`.
    positions: Array,
    /// Position of the first token.
    first_position: i32,
    /// `[types, hidden]`.
    types: Array,
    norm: LayerNorm,
    layers: Vec<PostNormBlock>,
    sizes: EncoderSizes,
}

impl Trunk {
    pub(super) fn load(
        config: &Config,
        weights: &mut Weights,
        prefixes: &[&str],
        first_position: i32,
    ) -> Result<Self> {
        let kind = config.position_embedding_type.as_deref();
        if let Some(kind) = kind.filter(|&kind| kind != "absolute") {
            let setting = format!("position_embedding_type = {kind}");
            return Err(ModelError::unsupported(
                setting,
                "positions are absolute here",
            ));
        }
        if config.is_decoder {
            let reason = "texts are read in both directions here";
            return Err(ModelError::unsupported("is_decoder = true", reason));
        }
        let root = weights.root(prefixes, "embeddings.word_embeddings.weight");
        let (hidden, positions) = (config.hidden_size, config.max_position_embeddings);
        let shape = PostNormShape {
            hidden,
            intermediate: config.intermediate_size,
            heads: config.num_attention_heads,
            eps: config.layer_norm_eps,
            activation: Activation::named("hidden_act", &config.hidden_act, weights.compute)?,
        };
        let layer = |index| {
            let scope = &mut weights.at(&format!("{root}encoder.layer.{index}"));
            PostNormBlock::load(shape, &NAMES, scope)
        };
        let layers = (0..config.num_hidden_layers)
            .map(layer)
            .collect::<Result<_>>()?;
        let scope = &mut weights.at(&format!("{root}embeddings"));
        let vocab = config.vocab_size;
        Ok(Self {
            words: Embedding::load(&mut scope.at("word_embeddings"), vocab, hidden)?,
            positions: scope.at("position_embeddings").dense(positions, hidden)?,
            first_position,
            types: scope
                .at("token_type_embeddings")
                .dense(config.type_vocab_size, hidden)?,
            norm: LayerNorm::load(
                &mut scope.at("LayerNorm"),
                hidden,
                config.layer_norm_eps,
                true,
            )?,
            layers,
            sizes: EncoderSizes { hidden, vocab },
        })
    }

    pub(super) fn forward(&self, texts: &[EncoderText<'_>], compute: Compute) -> Result<Rows> {
        let batch = Batch::new(texts, compute);
        let words = self.words.forward(&batch.tokens)?;
        let types = batch.segment_rows(&self.types)?;
        let positions = batch.positions(&self.positions, self.first_position)?;
        let mut h = self.norm.forward(&words.add(types)?.add(positions)?)?;
        let masks = batch.masks(None, h.dtype())?;
        for layer in &self.layers {
            h = layer.forward(&h, &batch, &masks)?;
        }
        Ok(batch.rows(h))
    }

    pub(super) fn sizes(&self) -> EncoderSizes {
        self.sizes
    }
}

/// BERT.
#[derive(Debug)]
pub(crate) struct Bert(Trunk);

/// Tokens of the longest text, where rows of the table before `first_position` stand for no place.
pub(super) fn limit(config: &Config, first_position: i32) -> Option<usize> {
    usize::try_from(config.max_position_embeddings - first_position).ok()
}

impl EncoderArchitecture for Bert {
    type Config = Config;
    const MODEL_TYPES: &'static [&'static str] = &["bert"];
    const POOL: Pool = Pool::Mean;
    const UNUSED: &'static [&'static str] = &["embeddings.position_ids", "pooler.", "cls."];

    fn positions(config: &Config) -> Option<usize> {
        limit(config, 0)
    }

    fn build(config: &Config, weights: &mut Weights) -> Result<Self> {
        Ok(Self(Trunk::load(config, weights, &["bert.", ""], 0)?))
    }

    fn build_scorer(config: &Config, weights: &mut Weights) -> Result<Scorer> {
        let hidden = config.hidden_size;
        let root = weights.root(&["bert.", ""], "pooler.dense.weight");
        let pooler = &mut weights.at(&format!("{root}pooler.dense"));
        let pooler = Linear::load(pooler, hidden, hidden, true)?;
        let scorer = Scorer::load(&mut weights.at("classifier"), hidden, Pool::First, true)?;
        Ok(scorer.with_dense(pooler, Activation::Tanh))
    }

    fn forward(&self, texts: &[EncoderText<'_>], compute: Compute) -> Result<Rows> {
        self.0.forward(texts, compute)
    }

    fn sizes(&self) -> EncoderSizes {
        self.0.sizes()
    }
}
