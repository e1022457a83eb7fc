//! Gemma 3, the text model: most layers see a sliding window and rotate by a base of their own.

use mlx_rs::{Array, Dtype, ops};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Architecture;
use crate::{
    Model, ModelError, Result, Segment,
    cache::{CacheOptions, CacheShape, SequenceCache},
    layers::{
        Activation, Embedding, GatedMlp, Heads, Linear, Output, Projections, RmsNorm, Rope,
        RopeConfig, Step,
    },
    weights::{Scope, Weights},
};

#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    hidden_size: i32,
    num_hidden_layers: usize,
    intermediate_size: i32,
    num_attention_heads: i32,
    num_key_value_heads: i32,
    head_dim: i32,
    rms_norm_eps: f32,
    pub(super) vocab_size: i32,
    query_pre_attn_scalar: f32,
    sliding_window: usize,
    sliding_window_pattern: usize,
    rope_local_base_freq: Option<f32>,
    hidden_activation: Option<String>,
    attention_bias: bool,
    attn_logit_softcapping: Option<f32>,
    final_logit_softcapping: Option<f32>,
    use_bidirectional_attention: Option<bool>,
    layer_types: Option<Vec<String>>,
    #[serde(flatten)]
    rope: RopeConfig,
}

impl Config {
    fn is_sliding(&self, layer: usize) -> bool {
        !(layer + 1).is_multiple_of(self.sliding_window_pattern)
    }

    /// Refuses what mlx-lm's model does not compute either.
    fn check(&self) -> Result<()> {
        let refuse = |setting: &str| {
            Err(ModelError::unsupported(
                setting,
                "gemma3_text checkpoints do not use it",
            ))
        };
        if self.attn_logit_softcapping.is_some() {
            return refuse("attn_logit_softcapping");
        }
        if self.final_logit_softcapping.is_some() {
            return refuse("final_logit_softcapping");
        }
        if self.use_bidirectional_attention == Some(true) {
            return refuse("use_bidirectional_attention");
        }
        for (layer, kind) in self.layer_types.iter().flatten().enumerate() {
            if (kind == "sliding_attention") != self.is_sliding(layer) {
                let setting = format!("layer_types[{layer}] = {kind}");
                let reason = "it differs from sliding_window_pattern";
                return Err(ModelError::unsupported(setting, reason));
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Attention {
    qkv: Projections<3>,
    o_proj: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    heads: Heads,
}

impl Attention {
    fn load(config: &Config, scope: &mut Scope<'_>) -> Result<Self> {
        let (hidden, queries) = (config.hidden_size, config.num_attention_heads);
        let (kv, dim) = (config.num_key_value_heads, config.head_dim);
        let (bias, eps) = (config.attention_bias, config.rms_norm_eps);
        let qkv = [
            ("q_proj", queries * dim),
            ("k_proj", kv * dim),
            ("v_proj", kv * dim),
        ];
        Ok(Self {
            qkv: Projections::load(scope, hidden, qkv, bias)?,
            o_proj: Linear::load(&mut scope.at("o_proj"), queries * dim, hidden, bias)?,
            q_norm: RmsNorm::load_one_based(&mut scope.at("q_norm"), dim, eps)?,
            k_norm: RmsNorm::load_one_based(&mut scope.at("k_norm"), dim, eps)?,
            heads: Heads {
                queries,
                kv,
                dim,
                scale: config.query_pre_attn_scalar.powf(-0.5),
            },
        })
    }

    fn forward(
        &self,
        x: &Array,
        rope: &Rope,
        layer: usize,
        step: &mut Step<'_, '_>,
    ) -> Result<Array> {
        let [queries, keys, values] = self.qkv.forward(x)?;
        let Heads {
            queries: heads,
            kv,
            dim,
            ..
        } = self.heads;
        let queries = self
            .q_norm
            .forward(&queries.reshape(&[step.total, heads, dim])?)?;
        let keys = self
            .k_norm
            .forward(&keys.reshape(&[step.total, kv, dim])?)?;
        let attended = self
            .heads
            .attend([&queries, &keys, &values], rope, layer, step)?;
        self.o_proj.forward(&attended)
    }
}

#[derive(Debug)]
struct Block {
    input_layernorm: RmsNorm,
    self_attn: Attention,
    post_attention_layernorm: RmsNorm,
    pre_feedforward_layernorm: RmsNorm,
    mlp: GatedMlp,
    post_feedforward_layernorm: RmsNorm,
}

impl Block {
    fn load(config: &Config, scope: &mut Scope<'_>) -> Result<Self> {
        let activation = Activation::GeluTanh;
        let activation =
            activation.expect("hidden_activation", config.hidden_activation.as_deref())?;
        let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
        let mlp = &mut scope.at("mlp");
        let mlp = GatedMlp::load(mlp, hidden, intermediate, false, activation)?;
        let mut norm =
            |name| RmsNorm::load_one_based(&mut scope.at(name), hidden, config.rms_norm_eps);
        Ok(Self {
            input_layernorm: norm("input_layernorm")?,
            post_attention_layernorm: norm("post_attention_layernorm")?,
            pre_feedforward_layernorm: norm("pre_feedforward_layernorm")?,
            post_feedforward_layernorm: norm("post_feedforward_layernorm")?,
            self_attn: Attention::load(config, &mut scope.at("self_attn"))?,
            mlp,
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
        let h = add_clipped(x, &self.post_attention_layernorm.forward(&attended)?)?;
        let expanded = self
            .mlp
            .forward(&self.pre_feedforward_layernorm.forward(&h)?)?;
        add_clipped(&h, &self.post_feedforward_layernorm.forward(&expanded)?)
    }
}

/// The sum, kept finite where float16 would overflow: Gemma's residuals are large.
fn add_clipped(x: &Array, y: &Array) -> Result<Array> {
    if x.dtype() != Dtype::Float16 {
        return Ok(x.add(y)?);
    }
    let sum = x
        .as_dtype(Dtype::Float32)?
        .add(y.as_dtype(Dtype::Float32)?)?;
    let bound = 65_504.0;
    Ok(ops::clip(sum, (-bound, bound))?.as_dtype(Dtype::Float16)?)
}

/// A decoder of blocks with norms before and after each part.
#[derive(Debug)]
pub(crate) struct Gemma3Text {
    embed_tokens: Embedding,
    layers: Vec<Block>,
    output: Output,
    caches: CacheShape,
    /// Rotation of layers with a window, and of the others.
    local_rope: Rope,
    global_rope: Rope,
    /// √hidden, rounded as the checkpoints were trained with it.
    embedding_scale: f32,
}

impl Architecture for Gemma3Text {
    type Config = Config;
    type Model = Self;
    const MODEL_TYPES: &'static [&'static str] = &["gemma3_text"];

    fn left_out() -> Value {
        json!({
            "hidden_size": 1152,
            "num_hidden_layers": 26,
            "intermediate_size": 6912,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "rms_norm_eps": 1e-6,
            "vocab_size": 262_144,
            "query_pre_attn_scalar": 256.0,
            "sliding_window": 512,
            "sliding_window_pattern": 6,
            "attention_bias": false,
        })
    }

    fn build(config: Config, weights: &mut Weights) -> Result<Self> {
        config.check()?;
        let (hidden, vocab) = (config.hidden_size, config.vocab_size);
        let embed_tokens = Embedding::load(&mut weights.at("model.embed_tokens"), vocab, hidden)?;
        let layers = (0..config.num_hidden_layers)
            .map(|i| Block::load(&config, &mut weights.at(&format!("model.layers.{i}"))))
            .collect::<Result<_>>()?;
        let norm =
            RmsNorm::load_one_based(&mut weights.at("model.norm"), hidden, config.rms_norm_eps)?;
        // Gemma checkpoints share the matrix and do not say so.
        let output = Output::load(
            weights,
            norm,
            &embed_tokens,
            (hidden, vocab),
            ("lm_head", None),
        )?;
        let window = |layer| config.is_sliding(layer).then_some(config.sliding_window);
        let windows = (0..config.num_hidden_layers).map(window).collect();
        let caches = CacheShape::new(windows, config.head_dim, weights);
        let local_base = config.rope_local_base_freq.or(config.rope.sliding_theta());
        let local_base = local_base.unwrap_or(10_000.0);
        let local_rope = Rope::unscaled(config.head_dim, local_base, weights.compute)?;
        let global_rope = config
            .rope
            .build(config.head_dim, 1_000_000.0, weights.compute)?;
        let embedding_scale = round_to_bfloat16((hidden as f32).sqrt());
        Ok(Self {
            embed_tokens,
            layers,
            output,
            caches,
            local_rope,
            global_rope,
            embedding_scale,
        })
    }
}

impl Model for Gemma3Text {
    fn forward(&self, tokens: &Array, segments: &mut [Segment<'_>]) -> Result<Array> {
        let mut step = Step::new(segments);
        let h = self.embed_tokens.forward(tokens)?;
        let mut h = h.multiply(Array::from_f32(self.embedding_scale).as_dtype(h.dtype())?)?;
        for (index, (layer, window)) in self.layers.iter().zip(&self.caches.windows).enumerate() {
            let rope = if window.is_some() {
                &self.local_rope
            } else {
                &self.global_rope
            };
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

/// Rounds to the nearest bfloat16, ties to even.
fn round_to_bfloat16(x: f32) -> f32 {
    let bits = x.to_bits();
    let half = 0x7fff + ((bits >> 16) & 1);
    f32::from_bits((bits + half) & 0xffff_0000)
}
