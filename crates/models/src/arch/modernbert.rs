//! `ModernBERT`: pre-norm blocks with rotation, of which most attend within a window.

use mlx_rs::Array;
use serde::Deserialize;

use super::EncoderArchitecture;
use crate::{
    ModelError, Result,
    compute::Compute,
    encoder::{Batch, EncoderSizes, EncoderText, Masks, Pool, Rows, Scorer},
    layers::{
        Activation, Embedding, LayerNorm, Linear, Projections, Rope, RopeConfig, SelfAttention,
    },
    weights::{Scope, Weights},
};

#[derive(Debug, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "as config.json has them")]
pub(crate) struct Config {
    hidden_size: i32,
    num_hidden_layers: usize,
    num_attention_heads: i32,
    intermediate_size: i32,
    #[serde(default = "gelu")]
    hidden_activation: String,
    norm_eps: f32,
    #[serde(default)]
    norm_bias: bool,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    vocab_size: i32,
    /// Tokens of a window, half to either side.
    local_attention: i32,
    global_attn_every_n_layers: Option<usize>,
    /// What newer versions of transformers write instead.
    layer_types: Option<Vec<String>>,
    global_rope_theta: Option<f32>,
    local_rope_theta: Option<f32>,
    #[serde(flatten)]
    rope: RopeConfig,
    classifier_pooling: Option<String>,
    #[serde(default)]
    classifier_bias: bool,
    #[serde(default = "gelu")]
    classifier_activation: String,
}

fn gelu() -> String {
    "gelu".to_owned()
}

impl Config {
    fn norm(&self, scope: &mut Scope<'_>) -> Result<LayerNorm> {
        LayerNorm::load(scope, self.hidden_size, self.norm_eps, self.norm_bias)
    }

    /// Whether each layer attends within a window.
    fn is_local(&self) -> Result<Vec<bool>> {
        let Some(types) = &self.layer_types else {
            let every = self.global_attn_every_n_layers.unwrap_or(3).max(1);
            return Ok((0..self.num_hidden_layers)
                .map(|index| index % every != 0)
                .collect());
        };
        if types.len() != self.num_hidden_layers {
            let reason = format!("{} for {} layers", types.len(), self.num_hidden_layers);
            return Err(ModelError::unsupported("layer_types", reason));
        }
        let is_local = |kind: &String| match kind.as_str() {
            "sliding_attention" => Ok(true),
            "full_attention" => Ok(false),
            other => Err(ModelError::unsupported(
                format!("layer_types: {other}"),
                "known are full_attention and sliding_attention",
            )),
        };
        types.iter().map(is_local).collect()
    }
}

#[derive(Debug)]
struct Block {
    /// The first layer's input is normalized already.
    attn_norm: Option<LayerNorm>,
    attn: SelfAttention,
    mlp_norm: LayerNorm,
    wi: Projections<2>,
    activation: Activation,
    wo: Linear,
    is_local: bool,
}

impl Block {
    fn load(config: &Config, scope: &mut Scope<'_>, is_local: bool) -> Result<Self> {
        let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
        let bias = config.attention_bias;
        let attn = &mut scope.at("attn");
        let qkv = Projections::load_joined(&mut attn.at("Wqkv"), hidden, [hidden; 3], bias)?;
        let output = Linear::load(&mut attn.at("Wo"), hidden, hidden, bias)?;
        let has_norm = scope.at("attn_norm").contains("weight");
        let mlp = &mut scope.at("mlp");
        let bias = config.mlp_bias;
        let wi = Projections::load_joined(&mut mlp.at("Wi"), hidden, [intermediate; 2], bias)?;
        let wo = Linear::load(&mut mlp.at("Wo"), intermediate, hidden, bias)?;
        let name = &config.hidden_activation;
        let activation = Activation::named("hidden_activation", name, scope.compute())?;
        Ok(Self {
            attn_norm: has_norm
                .then(|| config.norm(&mut scope.at("attn_norm")))
                .transpose()?,
            attn: SelfAttention::new(qkv, output, config.num_attention_heads, scope.compute()),
            mlp_norm: config.norm(&mut scope.at("mlp_norm"))?,
            wi,
            activation,
            wo,
            is_local,
        })
    }

    fn forward(&self, x: &Array, batch: &Batch, masks: &Masks, rope: &Rope) -> Result<Array> {
        let normed = self
            .attn_norm
            .as_ref()
            .map(|norm| norm.forward(x))
            .transpose()?;
        let normed = normed.as_ref().unwrap_or(x);
        let h = self
            .attn
            .forward(normed, batch, masks, Some(rope))?
            .add(x)?;
        let [input, gate] = self.wi.forward(&self.mlp_norm.forward(&h)?)?;
        Ok(self
            .wo
            .forward(&self.activation.gate(&input, &gate)?)?
            .add(h)?)
    }
}

/// An encoder of pre-norm blocks.
#[derive(Debug)]
pub(crate) struct ModernBert {
    tok_embeddings: Embedding,
    norm: LayerNorm,
    layers: Vec<Block>,
    final_norm: LayerNorm,
    global_rope: Rope,
    local_rope: Rope,
    /// Tokens to either side that a local layer sees.
    window: i32,
    sizes: EncoderSizes,
}

impl EncoderArchitecture for ModernBert {
    type Config = Config;
    const MODEL_TYPES: &'static [&'static str] = &["modernbert"];
    const POOL: Pool = Pool::Mean;
    const UNUSED: &'static [&'static str] = &["head.", "decoder."];

    fn positions(config: &Config) -> Option<usize> {
        config.rope.positions()
    }

    fn build(config: &Config, weights: &mut Weights) -> Result<Self> {
        let root = weights.root(&["model.", ""], "embeddings.tok_embeddings.weight");
        let (hidden, vocab) = (config.hidden_size, config.vocab_size);
        let layer = |(index, is_local)| {
            Block::load(
                config,
                &mut weights.at(&format!("{root}layers.{index}")),
                is_local,
            )
        };
        let layers = config.is_local()?.into_iter().enumerate();
        let layers = layers.map(layer).collect::<Result<_>>()?;
        let embeddings = &mut weights.at(&format!("{root}embeddings"));
        let tok_embeddings = Embedding::load(&mut embeddings.at("tok_embeddings"), vocab, hidden)?;
        let norm = config.norm(&mut embeddings.at("norm"))?;
        let head_dim = hidden / config.num_attention_heads;
        let global_theta = config.global_rope_theta.unwrap_or(160_000.0);
        let local_theta = config.local_rope_theta.or(config.rope.sliding_theta());
        let compute = weights.compute;
        Ok(Self {
            tok_embeddings,
            norm,
            layers,
            final_norm: config.norm(&mut weights.at(&format!("{root}final_norm")))?,
            global_rope: config.rope.build(head_dim, global_theta, compute)?,
            local_rope: Rope::unscaled(head_dim, local_theta.unwrap_or(10_000.0), compute)?,
            window: config.local_attention / 2,
            sizes: EncoderSizes { hidden, vocab },
        })
    }

    fn build_scorer(config: &Config, weights: &mut Weights) -> Result<Scorer> {
        let hidden = config.hidden_size;
        let pool = match config.classifier_pooling.as_deref() {
            None | Some("cls") => Pool::First,
            Some("mean") => Pool::Mean,
            Some(other) => {
                let setting = format!("classifier_pooling = {other}");
                return Err(ModelError::unsupported(setting, "known are cls and mean"));
            }
        };
        let name = &config.classifier_activation;
        let activation = Activation::named("classifier_activation", name, weights.compute)?;
        let head = &mut weights.at("head");
        let dense = Linear::load(
            &mut head.at("dense"),
            hidden,
            hidden,
            config.classifier_bias,
        )?;
        let norm = config.norm(&mut head.at("norm"))?;
        let scorer = Scorer::load(&mut weights.at("classifier"), hidden, pool, true)?;
        Ok(scorer.with_dense(dense, activation).with_norm(norm))
    }

    fn forward(&self, texts: &[EncoderText<'_>], compute: Compute) -> Result<Rows> {
        let batch = Batch::new(texts, compute);
        let mut h = self
            .norm
            .forward(&self.tok_embeddings.forward(&batch.tokens)?)?;
        let global = batch.masks(None, h.dtype())?;
        let local = batch.masks(Some(self.window), h.dtype())?;
        for layer in &self.layers {
            let (masks, rope) = if layer.is_local {
                (&local, &self.local_rope)
            } else {
                (&global, &self.global_rope)
            };
            h = layer.forward(&h, &batch, masks, rope)?;
        }
        Ok(batch.rows(self.final_norm.forward(&h)?))
    }

    fn sizes(&self) -> EncoderSizes {
        self.sizes
    }
}
