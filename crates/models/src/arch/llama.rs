//! Llama and what shares its layout: Mistral and `SmolLM`.

use mlx_rs::Array;
use serde::Deserialize;

use super::{Architecture, warn_of_unused_window};
use crate::{
    Model, ModelError, Result, Segment,
    cache::{CacheOptions, CacheShape, LayerWindow, SequenceCache},
    layers::{
        Activation, Attention, Embedding, GatedMlp, Heads, Output, RmsNorm, Rope, RopeConfig, Step,
    },
    weights::{Scope, Weights},
};

#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    hidden_size: i32,
    pub(super) num_hidden_layers: usize,
    intermediate_size: i32,
    num_attention_heads: i32,
    num_key_value_heads: Option<i32>,
    head_dim: Option<i32>,
    rms_norm_eps: f32,
    vocab_size: i32,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    hidden_act: Option<String>,
    tie_word_embeddings: Option<bool>,
    layer_types: Option<Vec<String>>,
    sliding_window: Option<usize>,
    #[serde(flatten)]
    rope: RopeConfig,
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
pub(crate) struct Llama {
    embed_tokens: Embedding,
    layers: Vec<Block>,
    output: Output,
    rope: Rope,
    /// For layers that do not rotate.
    no_rope: Rope,
    /// Whether each layer rotates.
    rotates: Vec<bool>,
    caches: CacheShape,
}

impl Architecture for Llama {
    type Config = Config;
    type Model = Self;
    const MODEL_TYPES: &'static [&'static str] = &["llama", "mistral"];

    fn build(config: Config, weights: &mut Weights) -> Result<Self> {
        Self::load(&config, vec![true; config.num_hidden_layers], weights)
    }
}

impl Llama {
    /// Takes all tensors; `rotates` says of each layer whether it does.
    pub(super) fn load(config: &Config, rotates: Vec<bool>, weights: &mut Weights) -> Result<Self> {
        let activation = Activation::Silu.expect("hidden_act", config.hidden_act.as_deref())?;
        weights.ignore(|key| key.ends_with("self_attn.rotary_emb.inv_freq"));
        let (hidden, vocab) = (config.hidden_size, config.vocab_size);
        let embed_tokens = Embedding::load(&mut weights.at("model.embed_tokens"), vocab, hidden)?;
        let layers = (0..config.num_hidden_layers)
            .map(|i| {
                Block::load(
                    config,
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
        let caches = CacheShape::new(config.windows()?, config.head_dim(), weights);
        Ok(Self {
            embed_tokens,
            layers,
            output,
            rope,
            no_rope: Rope::none(),
            rotates,
            caches,
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
            scale: (dim as f32).powf(-0.5),
        }
    }

    fn head_dim(&self) -> i32 {
        self.head_dim
            .unwrap_or(self.hidden_size / self.num_attention_heads)
    }

    /// A window only where `layer_types` asks for one, as in mlx-lm; early Mistral checkpoints have
    /// a bare `sliding_window`.
    fn windows(&self) -> Result<Vec<LayerWindow>> {
        let Some(types) = &self.layer_types else {
            warn_of_unused_window(self.sliding_window);
            return Ok(vec![None; self.num_hidden_layers]);
        };
        if types.len() != self.num_hidden_layers {
            let reason = format!(
                "{} entries for {} layers",
                types.len(),
                self.num_hidden_layers
            );
            return Err(ModelError::unsupported("layer_types", reason));
        }
        types
            .iter()
            .map(|kind| match (kind.as_str(), self.sliding_window) {
                ("full_attention", _) => Ok(None),
                ("sliding_attention", Some(window)) => Ok(Some(window)),
                (other, _) => Err(ModelError::unsupported(
                    format!("layer_types: {other}"),
                    "layers are full_attention, or sliding_attention with a sliding_window",
                )),
            })
            .collect()
    }
}

impl Model for Llama {
    fn forward(&self, tokens: &Array, segments: &mut [Segment<'_>]) -> Result<Array> {
        let mut step = Step::new(segments);
        let mut h = self.embed_tokens.forward(tokens)?;
        for (index, (layer, rotates)) in self.layers.iter().zip(&self.rotates).enumerate() {
            let rope = if *rotates { &self.rope } else { &self.no_rope };
            h = layer.forward(&h, rope, index, &mut step)?;
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
