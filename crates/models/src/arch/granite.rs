//! IBM's Granite 3 and 4 without experts: Llama's layout, with factors on embeddings, scores,
//! residuals and logits.

use mlx_rs::Array;
use serde::Deserialize;

use super::Architecture;
use crate::{
    Model, Result, Segment,
    cache::{CacheOptions, CacheShape, SequenceCache},
    layers::{
        Activation, Attention, Embedding, GatedMlp, Heads, Output, RmsNorm, Rope, RopeConfig, Step,
    },
    weights::{Scope, Weights},
};

#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    hidden_size: i32,
    num_hidden_layers: usize,
    intermediate_size: i32,
    num_attention_heads: i32,
    num_key_value_heads: Option<i32>,
    rms_norm_eps: f32,
    vocab_size: i32,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    hidden_act: Option<String>,
    tie_word_embeddings: Option<bool>,
    embedding_multiplier: f32,
    /// Factor on the scores of attention.
    attention_multiplier: f32,
    residual_multiplier: f32,
    /// Logits are divided by it.
    logits_scaling: f32,
    #[serde(flatten)]
    rope: RopeConfig,
}

#[derive(Debug)]
struct Block {
    input_layernorm: RmsNorm,
    self_attn: Attention,
    post_attention_layernorm: RmsNorm,
    mlp: GatedMlp,
    residual_multiplier: f32,
}

impl Block {
    fn load(config: &Config, activation: Activation, scope: &mut Scope<'_>) -> Result<Self> {
        let (hidden, eps) = (config.hidden_size, config.rms_norm_eps);
        let norm = |scope: &mut Scope<'_>| RmsNorm::load(scope, hidden, eps);
        Ok(Self {
            input_layernorm: norm(&mut scope.at("input_layernorm"))?,
            self_attn: Attention::load(
                &mut scope.at("self_attn"),
                hidden,
                config.heads(),
                (config.attention_bias, config.attention_bias),
            )?,
            post_attention_layernorm: norm(&mut scope.at("post_attention_layernorm"))?,
            mlp: GatedMlp::load(
                &mut scope.at("mlp"),
                hidden,
                config.intermediate_size,
                config.mlp_bias,
                activation,
            )?,
            residual_multiplier: config.residual_multiplier,
        })
    }

    fn forward(
        &self,
        x: &Array,
        rope: &Rope,
        layer: usize,
        step: &mut Step<'_, '_>,
    ) -> Result<Array> {
        let normed = self.input_layernorm.forward(x)?;
        let attended = self.self_attn.forward(&normed, rope, layer, step)?;
        let h = x.add(scale(&attended, self.residual_multiplier)?)?;
        let fed = self
            .mlp
            .forward(&self.post_attention_layernorm.forward(&h)?)?;
        Ok(h.add(scale(&fed, self.residual_multiplier)?)?)
    }
}

/// A decoder of pre-norm blocks.
#[derive(Debug)]
pub(crate) struct Granite {
    embed_tokens: Embedding,
    layers: Vec<Block>,
    output: Output,
    rope: Rope,
    caches: CacheShape,
    embedding_multiplier: f32,
    logits_scaling: f32,
}

impl Architecture for Granite {
    type Config = Config;
    type Model = Self;
    const MODEL_TYPES: &'static [&'static str] = &["granite"];

    fn build(config: Config, weights: &mut Weights) -> Result<Self> {
        let activation = Activation::Silu.expect("hidden_act", config.hidden_act.as_deref())?;
        weights.ignore(|key| key.ends_with("self_attn.rotary_emb.inv_freq"));
        let (hidden, vocab) = (config.hidden_size, config.vocab_size);
        let embed_tokens = Embedding::load(&mut weights.at("model.embed_tokens"), vocab, hidden)?;
        let layers = (0..config.num_hidden_layers)
            .map(|i| {
                Block::load(
                    &config,
                    activation,
                    &mut weights.at(&format!("model.layers.{i}")),
                )
            })
            .collect::<Result<_>>()?;
        let norm = RmsNorm::load(&mut weights.at("model.norm"), hidden, config.rms_norm_eps)?;
        let tied = config.tie_word_embeddings;
        let rope = config
            .rope
            .build(config.head_dim(), 10_000.0, weights.compute)?;
        let output = Output::load(
            weights,
            norm,
            &embed_tokens,
            (hidden, vocab),
            ("lm_head", tied),
        )?;
        let caches = CacheShape::new(
            vec![None; config.num_hidden_layers],
            config.head_dim(),
            weights,
        );
        Ok(Self {
            embed_tokens,
            layers,
            output,
            rope,
            caches,
            embedding_multiplier: config.embedding_multiplier,
            logits_scaling: config.logits_scaling,
        })
    }
}

impl Config {
    fn heads(&self) -> Heads {
        let dim = self.head_dim();
        Heads {
            queries: self.num_attention_heads,
            kv: self.num_key_value_heads.unwrap_or(self.num_attention_heads),
            dim,
            scale: self.attention_multiplier,
        }
    }

    fn head_dim(&self) -> i32 {
        self.hidden_size / self.num_attention_heads
    }
}

/// A factor in the type of what it is on, so that half precision stays.
fn scale(x: &Array, factor: f32) -> Result<Array> {
    Ok(x.multiply(Array::from_f32(factor).as_dtype(x.dtype())?)?)
}

impl Model for Granite {
    fn forward(&self, tokens: &Array, segments: &mut [Segment<'_>]) -> Result<Array> {
        let mut step = Step::new(segments);
        let mut h = scale(
            &self.embed_tokens.forward(tokens)?,
            self.embedding_multiplier,
        )?;
        for (index, layer) in self.layers.iter().enumerate() {
            h = layer.forward(&h, &self.rope, index, &mut step)?;
        }
        scale(&self.output.forward(h, &step)?, 1.0 / self.logits_scaling)
    }

    fn new_cache(&self, options: &CacheOptions) -> Result<SequenceCache> {
        self.caches.empty(options)
    }

    fn vocab_size(&self) -> u32 {
        self.output.vocab_size()
    }
}
