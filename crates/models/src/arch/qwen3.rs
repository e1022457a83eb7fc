//! Qwen3: queries and keys are normalized by head.

use mlx_rs::Array;
use serde::Deserialize;

use super::{Architecture, EncoderArchitecture, warn_of_unused_window};
use crate::{
    LogitsRows, Model, ModelError, Result, Segment,
    cache::{CacheOptions, CacheShape, SequenceCache},
    compute::Compute,
    encoder::{AnswerTokens, EncoderSizes, EncoderText, Pool, Rows, Scorer},
    layers::{
        Activation, Embedding, GatedMlp, Heads, Linear, Output, Projections, RmsNorm, Rope,
        RopeConfig, Step,
    },
    weights::{Matrix, Scope, Weights},
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
    vocab_size: i32,
    hidden_act: Option<String>,
    #[serde(default)]
    attention_bias: bool,
    tie_word_embeddings: Option<bool>,
    #[serde(default)]
    use_sliding_window: bool,
    sliding_window: Option<usize>,
    #[serde(flatten)]
    rope: RopeConfig,
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
            q_norm: RmsNorm::load(&mut scope.at("q_norm"), dim, eps)?,
            k_norm: RmsNorm::load(&mut scope.at("k_norm"), dim, eps)?,
            heads: Heads {
                queries,
                kv,
                dim,
                scale: (dim as f32).powf(-0.5),
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
    mlp: GatedMlp,
}

impl Block {
    fn load(config: &Config, activation: Activation, scope: &mut Scope<'_>) -> Result<Self> {
        let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
        let norm = |scope: &mut Scope<'_>| RmsNorm::load(scope, hidden, config.rms_norm_eps);
        let mlp = &mut scope.at("mlp");
        let mlp = GatedMlp::load(mlp, hidden, intermediate, false, activation)?;
        Ok(Self {
            input_layernorm: norm(&mut scope.at("input_layernorm"))?,
            self_attn: Attention::load(config, &mut scope.at("self_attn"))?,
            post_attention_layernorm: norm(&mut scope.at("post_attention_layernorm"))?,
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
        let h = x.add(attended)?;
        Ok(self
            .mlp
            .forward(&self.post_attention_layernorm.forward(&h)?)?
            .add(h)?)
    }
}

/// The layers before the head.
#[derive(Debug)]
struct Decoder {
    embed_tokens: Embedding,
    layers: Vec<Block>,
    rope: Rope,
    caches: CacheShape,
}

impl Decoder {
    /// Takes what is below `root`, and the final norm for the head.
    fn load(config: &Config, weights: &mut Weights, root: &str) -> Result<(Self, RmsNorm)> {
        let activation = Activation::Silu.expect("hidden_act", config.hidden_act.as_deref())?;
        if config.use_sliding_window {
            warn_of_unused_window(config.sliding_window);
        }
        let (hidden, vocab) = (config.hidden_size, config.vocab_size);
        let embed_tokens = &mut weights.at(&format!("{root}embed_tokens"));
        let embed_tokens = Embedding::load(embed_tokens, vocab, hidden)?;
        let layers = (0..config.num_hidden_layers)
            .map(|i| {
                Block::load(
                    config,
                    activation,
                    &mut weights.at(&format!("{root}layers.{i}")),
                )
            })
            .collect::<Result<_>>()?;
        let norm = &mut weights.at(&format!("{root}norm"));
        let norm = RmsNorm::load(norm, hidden, config.rms_norm_eps)?;
        let rope = config
            .rope
            .build(config.head_dim, 1_000_000.0, weights.compute)?;
        let caches = CacheShape::new(
            vec![None; config.num_hidden_layers],
            config.head_dim,
            weights,
        );
        Ok((
            Self {
                embed_tokens,
                layers,
                rope,
                caches,
            },
            norm,
        ))
    }

    fn forward(&self, tokens: &Array, step: &mut Step<'_, '_>) -> Result<Array> {
        let mut h = self.embed_tokens.forward(tokens)?;
        for (index, layer) in self.layers.iter().enumerate() {
            h = layer.forward(&h, &self.rope, index, step)?;
        }
        Ok(h)
    }
}

/// A decoder of pre-norm blocks.
#[derive(Debug)]
pub(crate) struct Qwen3 {
    decoder: Decoder,
    output: Output,
}

impl Architecture for Qwen3 {
    type Config = Config;
    type Model = Self;
    const MODEL_TYPES: &'static [&'static str] = &["qwen3"];

    fn build(config: Config, weights: &mut Weights) -> Result<Self> {
        let (decoder, norm) = Decoder::load(&config, weights, "model.")?;
        let (sizes, tied) = (
            (config.hidden_size, config.vocab_size),
            config.tie_word_embeddings,
        );
        let output = Output::load(
            weights,
            norm,
            &decoder.embed_tokens,
            sizes,
            ("lm_head", tied),
        )?;
        Ok(Self { decoder, output })
    }
}

impl Model for Qwen3 {
    fn forward(&self, tokens: &Array, segments: &mut [Segment<'_>]) -> Result<Array> {
        let mut step = Step::new(segments);
        let h = self.decoder.forward(tokens, &mut step)?;
        self.output.forward(h, &step)
    }

    fn new_cache(&self, options: &CacheOptions) -> Result<SequenceCache> {
        self.decoder.caches.empty(options)
    }

    fn vocab_size(&self) -> u32 {
        self.output.vocab_size()
    }
}

/// The same decoder, read for what its last token has gathered.
#[derive(Debug)]
pub(crate) struct Qwen3Encoder {
    decoder: Decoder,
    norm: RmsNorm,
    sizes: EncoderSizes,
}

impl EncoderArchitecture for Qwen3Encoder {
    type Config = Config;
    const MODEL_TYPES: &'static [&'static str] = &["qwen3"];
    const POOL: Pool = Pool::Last;
    const UNUSED: &'static [&'static str] = &["lm_head."];

    fn positions(config: &Config) -> Option<usize> {
        config.rope.positions()
    }

    fn build(config: &Config, weights: &mut Weights) -> Result<Self> {
        let root = weights.root(&["model.", ""], "embed_tokens.weight");
        let (decoder, norm) = Decoder::load(config, weights, root)?;
        let (hidden, vocab) = (config.hidden_size, config.vocab_size);
        let sizes = EncoderSizes { hidden, vocab };
        Ok(Self {
            decoder,
            norm,
            sizes,
        })
    }

    fn build_scorer(config: &Config, weights: &mut Weights) -> Result<Scorer> {
        Scorer::load(
            &mut weights.at("score"),
            config.hidden_size,
            Pool::Last,
            false,
        )
    }

    fn build_answer(
        &self,
        config: &Config,
        weights: &mut Weights,
        answers: AnswerTokens,
    ) -> Result<Scorer> {
        let (hidden, vocab) = (config.hidden_size, config.vocab_size);
        if let Some(&token) = [answers.yes, answers.no]
            .iter()
            .find(|&&token| token >= vocab as u32)
        {
            return Err(ModelError::UnknownToken {
                token,
                vocab: vocab as u32,
            });
        }
        let rows = Array::from_slice(&[answers.yes, answers.no], &[2]);
        let tied = config.tie_word_embeddings;
        let rows = if tied.unwrap_or_else(|| !weights.contains("lm_head.weight")) {
            self.decoder.embed_tokens.forward(&rows)?
        } else {
            Embedding::load(&mut weights.at("lm_head"), vocab, hidden)?.forward(&rows)?
        };
        // sigmoid(yes - no) is the softmax over the two.
        let [yes, no] = [0, 1].map(|row| rows.take_axis(Array::from_slice(&[row], &[1]), 0));
        let difference = yes?.subtract(no?)?;
        difference.eval()?;
        Ok(Scorer::new(
            Pool::Last,
            Linear::new(&Matrix::Dense(difference), None, None)?,
        ))
    }

    fn forward(&self, texts: &[EncoderText<'_>], _compute: Compute) -> Result<Rows> {
        let tokens = texts.iter().flat_map(|text| text.tokens.iter().copied());
        let lengths: Vec<_> = texts.iter().map(|text| text.tokens.len()).collect();
        let tokens = Array::from_iter(tokens, &[lengths.iter().sum::<usize>() as i32]);
        let mut caches: Vec<_> = texts.iter().map(|_| self.decoder.caches.unkept()).collect();
        let segments = lengths.iter().zip(&mut caches);
        let mut segments: Vec<_> = segments
            .map(|(&length, cache)| Segment {
                length,
                cache,
                logits: LogitsRows::None,
            })
            .collect();
        let h = self
            .decoder
            .forward(&tokens, &mut Step::new(&mut segments))?;
        Ok(Rows::end_to_end(self.norm.forward(&h)?, &lengths))
    }

    fn sizes(&self) -> EncoderSizes {
        self.sizes
    }
}
