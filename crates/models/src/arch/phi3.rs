//! Phi-3, Phi-3.5 and Phi-4-mini: one matrix for queries, keys and values, one for gate and up,
//! and rotation of a part of each head.

use mlx_rs::Array;
use serde::Deserialize;

use super::{Architecture, warn_of_unused_window};
use crate::{
    Model, Result, Segment,
    cache::{CacheOptions, CacheShape, SequenceCache},
    layers::{
        Activation, Attention, Embedding, GatedMlp, Heads, Linear, Output, Projections, RmsNorm,
        Rope, RopeConfig, Step,
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
    hidden_act: Option<String>,
    tie_word_embeddings: Option<bool>,
    sliding_window: Option<usize>,
    #[serde(flatten)]
    rope: RopeConfig,
}

impl Config {
    fn heads(&self) -> Heads {
        let dim = self.hidden_size / self.num_attention_heads;
        Heads {
            queries: self.num_attention_heads,
            kv: self.num_key_value_heads.unwrap_or(self.num_attention_heads),
            dim,
            scale: (dim as f32).powf(-0.5),
        }
    }
}

fn load_attention(config: &Config, scope: &mut Scope<'_>) -> Result<Attention> {
    let heads = config.heads();
    let Heads {
        queries, kv, dim, ..
    } = heads;
    let (hidden, qkv) = (config.hidden_size, [queries * dim, kv * dim, kv * dim]);
    Ok(Attention {
        qkv: Projections::load_joined(&mut scope.at("qkv_proj"), hidden, qkv, false)?,
        o_proj: Linear::load(&mut scope.at("o_proj"), queries * dim, hidden, false)?,
        heads,
    })
}

#[derive(Debug)]
struct Block {
    input_layernorm: RmsNorm,
    self_attn: Attention,
    post_attention_layernorm: RmsNorm,
    mlp: GatedMlp,
}

impl Block {
    fn load(config: &Config, activation: Activation, scope: &mut Scope<'_>) -> Result<Self> {
        let (hidden, eps) = (config.hidden_size, config.rms_norm_eps);
        let norm = |scope: &mut Scope<'_>| RmsNorm::load(scope, hidden, eps);
        Ok(Self {
            input_layernorm: norm(&mut scope.at("input_layernorm"))?,
            self_attn: load_attention(config, &mut scope.at("self_attn"))?,
            post_attention_layernorm: norm(&mut scope.at("post_attention_layernorm"))?,
            mlp: GatedMlp::load_joined(
                &mut scope.at("mlp"),
                hidden,
                config.intermediate_size,
                activation,
            )?,
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
        let h = x.add(attended)?;
        Ok(self
            .mlp
            .forward(&self.post_attention_layernorm.forward(&h)?)?
            .add(h)?)
    }
}

/// A decoder of pre-norm blocks.
#[derive(Debug)]
pub(crate) struct Phi3 {
    embed_tokens: Embedding,
    layers: Vec<Block>,
    output: Output,
    rope: Rope,
    caches: CacheShape,
}

impl Architecture for Phi3 {
    type Config = Config;
    type Model = Self;
    const MODEL_TYPES: &'static [&'static str] = &["phi3"];

    fn build(config: Config, weights: &mut Weights) -> Result<Self> {
        let activation = Activation::Silu.expect("hidden_act", config.hidden_act.as_deref())?;
        warn_of_unused_window(config.sliding_window);
        config.rope.check_phi3()?;
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
        let head_dim = hidden / config.num_attention_heads;
        let rope = config.rope.build(head_dim, 10_000.0, weights.compute)?;
        let output = Output::load(
            weights,
            norm,
            &embed_tokens,
            (hidden, vocab),
            ("lm_head", tied),
        )?;
        let caches = CacheShape::new(vec![None; config.num_hidden_layers], head_dim, weights);
        Ok(Self {
            embed_tokens,
            layers,
            output,
            rope,
            caches,
        })
    }
}

impl Model for Phi3 {
    fn forward(&self, tokens: &Array, segments: &mut [Segment<'_>]) -> Result<Array> {
        let mut step = Step::new(segments);
        let mut h = self.embed_tokens.forward(tokens)?;
        for (index, layer) in self.layers.iter().enumerate() {
            h = layer.forward(&h, &self.rope, index, &mut step)?;
        }
        self.output.forward(h, &step)
    }

    fn new_cache(&self, options: &CacheOptions) -> Result<SequenceCache> {
        self.caches.empty(options)
    }

    fn vocab_size(&self) -> u32 {
        self.output.vocab_size()
    }
}
