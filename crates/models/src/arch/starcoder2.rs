//! `StarCoder2`: norms by mean and variance, biases everywhere, and no gate before the activation.

use mlx_rs::Array;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Architecture, warn_of_unused_window};
use crate::{
    Model, Result, Segment,
    cache::{CacheOptions, CacheShape, SequenceCache},
    layers::{
        Activation, Attention, Embedding, Heads, LayerNorm, Linear, Output, Rope, RopeConfig, Step,
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
    norm_epsilon: f32,
    vocab_size: i32,
    use_bias: bool,
    hidden_act: String,
    tie_word_embeddings: bool,
    sliding_window: Option<usize>,
    #[serde(flatten)]
    rope: RopeConfig,
}

impl Config {
    fn heads(&self) -> Heads {
        let dim = self.head_dim();
        Heads {
            queries: self.num_attention_heads,
            kv: self.num_key_value_heads,
            dim,
            scale: (dim as f32).powf(-0.5),
        }
    }

    fn head_dim(&self) -> i32 {
        self.hidden_size / self.num_attention_heads
    }
}

#[derive(Debug)]
struct Mlp {
    c_fc: Linear,
    c_proj: Linear,
    activation: Activation,
}

impl Mlp {
    fn load(config: &Config, scope: &mut Scope<'_>) -> Result<Self> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let bias = config.use_bias;
        Ok(Self {
            c_fc: Linear::load(&mut scope.at("c_fc"), hidden, inner, bias)?,
            c_proj: Linear::load(&mut scope.at("c_proj"), inner, hidden, bias)?,
            activation: Activation::named("hidden_act", &config.hidden_act, scope.compute())?,
        })
    }

    fn forward(&self, x: &Array) -> Result<Array> {
        let expanded = self.activation.apply(&self.c_fc.forward(x)?)?;
        self.c_proj.forward(&expanded)
    }
}

#[derive(Debug)]
struct Block {
    input_layernorm: LayerNorm,
    self_attn: Attention,
    post_attention_layernorm: LayerNorm,
    mlp: Mlp,
}

impl Block {
    fn load(config: &Config, scope: &mut Scope<'_>) -> Result<Self> {
        let mut norm = |name| {
            LayerNorm::load(
                &mut scope.at(name),
                config.hidden_size,
                config.norm_epsilon,
                true,
            )
        };
        Ok(Self {
            input_layernorm: norm("input_layernorm")?,
            post_attention_layernorm: norm("post_attention_layernorm")?,
            self_attn: Attention::load(
                &mut scope.at("self_attn"),
                config.hidden_size,
                config.heads(),
                (config.use_bias, config.use_bias),
            )?,
            mlp: Mlp::load(config, &mut scope.at("mlp"))?,
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
        let h = x.add(self.self_attn.forward(&normed, rope, layer, step)?)?;
        let normed = self.post_attention_layernorm.forward(&h)?;
        Ok(h.add(self.mlp.forward(&normed)?)?)
    }
}

/// A decoder of pre-norm blocks.
#[derive(Debug)]
pub(crate) struct StarCoder2 {
    embed_tokens: Embedding,
    layers: Vec<Block>,
    output: Output<LayerNorm>,
    rope: Rope,
    caches: CacheShape,
}

impl Architecture for StarCoder2 {
    type Config = Config;
    type Model = Self;
    const MODEL_TYPES: &'static [&'static str] = &["starcoder2"];

    fn left_out() -> Value {
        json!({
            "norm_epsilon": 1e-5,
            "vocab_size": 49152,
            "use_bias": true,
            "hidden_act": "gelu_pytorch_tanh",
            "tie_word_embeddings": true,
        })
    }

    fn build(config: Config, weights: &mut Weights) -> Result<Self> {
        warn_of_unused_window(config.sliding_window);
        let (hidden, vocab) = (config.hidden_size, config.vocab_size);
        let embed_tokens = Embedding::load(&mut weights.at("model.embed_tokens"), vocab, hidden)?;
        let layers = (0..config.num_hidden_layers)
            .map(|i| Block::load(&config, &mut weights.at(&format!("model.layers.{i}"))))
            .collect::<Result<_>>()?;
        let norm = &mut weights.at("model.norm");
        let norm = LayerNorm::load(norm, hidden, config.norm_epsilon, true)?;
        let head = ("lm_head", Some(config.tie_word_embeddings));
        let output = Output::load(weights, norm, &embed_tokens, (hidden, vocab), head)?;
        let head_dim = config.head_dim();
        let rope = config.rope.build(head_dim, 100_000.0, weights.compute)?;
        let windows = vec![None; config.num_hidden_layers];
        let caches = CacheShape::new(windows, head_dim, weights);
        Ok(Self {
            embed_tokens,
            layers,
            output,
            rope,
            caches,
        })
    }
}

impl Model for StarCoder2 {
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
