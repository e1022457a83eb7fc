//! Nomic BERT: post-norm blocks with rotation and a gated feed-forward part.
//!
//! Its authors' own code and transformers name everything differently; both are read.

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
    #[serde(alias = "n_embd")]
    hidden_size: i32,
    #[serde(alias = "n_layer")]
    num_hidden_layers: usize,
    #[serde(alias = "n_head")]
    num_attention_heads: i32,
    #[serde(alias = "n_inner")]
    intermediate_size: i32,
    #[serde(alias = "activation_function")]
    hidden_act: String,
    #[serde(alias = "layer_norm_epsilon")]
    layer_norm_eps: f32,
    #[serde(alias = "n_positions")]
    max_position_embeddings: usize,
    vocab_size: i32,
    type_vocab_size: i32,
    rotary_emb_base: Option<f32>,
    rotary_emb_fraction: Option<f32>,
    rotary_emb_scale_base: Option<f32>,
    max_trained_positions: Option<usize>,
    #[serde(flatten)]
    rope: RopeConfig,
    #[serde(default)]
    rotary_emb_interleaved: bool,
    #[serde(default)]
    qkv_proj_bias: bool,
    #[serde(default)]
    mlp_fc1_bias: bool,
    #[serde(default)]
    mlp_fc2_bias: bool,
    #[serde(default)]
    prenorm: bool,
    #[serde(default)]
    parallel_block: bool,
    #[serde(default)]
    use_rms_norm: bool,
    #[serde(default)]
    causal: bool,
    num_experts: Option<u32>,
}

impl Config {
    fn check(&self) -> Result<()> {
        let wrong = [
            ("rotary_emb_interleaved", self.rotary_emb_interleaved),
            (
                "rotary_emb_fraction",
                self.rotary_emb_fraction.is_some_and(|part| part < 1.0),
            ),
            (
                "rotary_emb_scale_base",
                self.rotary_emb_scale_base.is_some(),
            ),
            ("qkv_proj_bias", self.qkv_proj_bias),
            ("mlp_fc1_bias", self.mlp_fc1_bias),
            ("mlp_fc2_bias", self.mlp_fc2_bias),
            ("prenorm", self.prenorm),
            ("parallel_block", self.parallel_block),
            ("use_rms_norm", self.use_rms_norm),
            ("causal", self.causal),
            (
                "num_experts",
                self.num_experts.is_some_and(|experts| experts > 0),
            ),
        ];
        match wrong.iter().find(|(_, is_set)| *is_set) {
            Some((setting, _)) => {
                let reason = "this is not computed for nomic_bert; versions 1 and 1.5 do without";
                Err(ModelError::unsupported(*setting, reason))
            }
            None => Ok(()),
        }
    }

    fn norm(&self, scope: &mut Scope<'_>) -> Result<LayerNorm> {
        LayerNorm::load(scope, self.hidden_size, self.layer_norm_eps, true)
    }

    /// Longest text. Beyond its training's length a checkpoint counts on a stretched rotation, which
    /// depends on the length of the text and is not computed here.
    fn positions(&self) -> usize {
        let limits = [
            self.max_trained_positions,
            Some(self.max_position_embeddings),
        ];
        limits.into_iter().flatten().min().unwrap_or_default()
    }
}

/// What differs between the two ways to name a block's parts.
struct Names {
    layers: &'static str,
    embedding_norm: &'static str,
    attention_output: &'static str,
    attention_norm: &'static str,
    /// Gate and the other factor.
    gate_up: [&'static str; 2],
    down: &'static str,
    norm: &'static str,
}

const AUTHORS: Names = Names {
    layers: "encoder.layers",
    embedding_norm: "emb_ln",
    attention_output: "attn.out_proj",
    attention_norm: "norm1",
    gate_up: ["fc12", "fc11"],
    down: "fc2",
    norm: "norm2",
};

const TRANSFORMERS: Names = Names {
    layers: "layers",
    embedding_norm: "embeddings.LayerNorm",
    attention_output: "self_attn.o_proj",
    attention_norm: "post_attention_layernorm",
    gate_up: ["gate_proj", "up_proj"],
    down: "down_proj",
    norm: "post_mlp_layernorm",
};

#[derive(Debug)]
struct Block {
    attention: SelfAttention,
    attention_norm: LayerNorm,
    gate_up: Projections<2>,
    activation: Activation,
    down: Linear,
    norm: LayerNorm,
}

impl Block {
    fn load(
        config: &Config,
        activation: Activation,
        names: &Names,
        scope: &mut Scope<'_>,
    ) -> Result<Self> {
        let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
        let joined = scope.at("attn.Wqkv");
        let qkv = if joined.contains("weight") {
            Projections::load_joined(&mut scope.at("attn.Wqkv"), hidden, [hidden; 3], false)?
        } else {
            let names = ["q_proj", "k_proj", "v_proj"].map(|name| (name, hidden));
            Projections::load(&mut scope.at("self_attn"), hidden, names, false)?
        };
        let output = Linear::load(&mut scope.at(names.attention_output), hidden, hidden, false)?;
        let gate_up = names.gate_up.map(|name| (name, intermediate));
        let mlp = &mut scope.at("mlp");
        let gate_up = Projections::load(mlp, hidden, gate_up, false)?;
        let down = Linear::load(&mut mlp.at(names.down), intermediate, hidden, false)?;
        Ok(Self {
            attention: SelfAttention::new(qkv, output, config.num_attention_heads, scope.compute()),
            attention_norm: config.norm(&mut scope.at(names.attention_norm))?,
            gate_up,
            activation,
            down,
            norm: config.norm(&mut scope.at(names.norm))?,
        })
    }

    fn forward(&self, x: &Array, batch: &Batch, masks: &Masks, rope: &Rope) -> Result<Array> {
        let attended = self.attention.forward(x, batch, masks, Some(rope))?;
        let h = self.attention_norm.forward(&attended.add(x)?)?;
        let [gate, up] = self.gate_up.forward(&h)?;
        let mlp = self.down.forward(&self.activation.gate(&gate, &up)?)?;
        self.norm.forward(&mlp.add(h)?)
    }
}

/// An encoder of post-norm blocks with rotation.
#[derive(Debug)]
pub(crate) struct NomicBert {
    words: Embedding,
    /// `[types, hidden]`.
    types: Array,
    norm: LayerNorm,
    layers: Vec<Block>,
    rope: Rope,
    sizes: EncoderSizes,
}

const PREFIXES: [&str; 4] = ["nomic_bert.", "bert.", "model.", ""];

impl EncoderArchitecture for NomicBert {
    type Config = Config;
    const MODEL_TYPES: &'static [&'static str] = &["nomic_bert"];
    const POOL: Pool = Pool::Mean;
    const UNUSED: &'static [&'static str] = &["embeddings.position_ids", "pooler.", "cls."];

    fn positions(config: &Config) -> Option<usize> {
        Some(config.positions())
    }

    fn build(config: &Config, weights: &mut Weights) -> Result<Self> {
        config.check()?;
        let root = weights.root(&PREFIXES, "embeddings.word_embeddings.weight");
        let is_authors = weights.contains(&format!("{root}{}.weight", AUTHORS.embedding_norm));
        let names = if is_authors { &AUTHORS } else { &TRANSFORMERS };
        let (hidden, vocab) = (config.hidden_size, config.vocab_size);
        let activation = match config.hidden_act.as_str() {
            "swiglu" => "silu",
            "geglu" => "gelu",
            other => other,
        };
        let activation = Activation::named("hidden_act", activation, weights.compute)?;
        let layer = |index| {
            let scope = &mut weights.at(&format!("{root}{}.{index}", names.layers));
            Block::load(config, activation, names, scope)
        };
        let layers = (0..config.num_hidden_layers)
            .map(layer)
            .collect::<Result<_>>()?;
        let norm = config.norm(&mut weights.at(&format!("{root}{}", names.embedding_norm)))?;
        let theta = config.rotary_emb_base.unwrap_or(1000.0);
        let rope =
            config
                .rope
                .build(hidden / config.num_attention_heads, theta, weights.compute)?;
        let embeddings = &mut weights.at(&format!("{root}embeddings"));
        let types = config.type_vocab_size;
        Ok(Self {
            words: Embedding::load(&mut embeddings.at("word_embeddings"), vocab, hidden)?,
            types: embeddings
                .at("token_type_embeddings")
                .dense(types, hidden)?,
            norm,
            layers,
            rope,
            sizes: EncoderSizes { hidden, vocab },
        })
    }

    fn build_scorer(config: &Config, weights: &mut Weights) -> Result<Scorer> {
        let hidden = config.hidden_size;
        let root = weights.root(&PREFIXES, "pooler.dense.weight");
        let pooler = &mut weights.at(&format!("{root}pooler.dense"));
        let pooler = Linear::load(pooler, hidden, hidden, true)?;
        let scorer = Scorer::load(&mut weights.at("classifier"), hidden, Pool::First, true)?;
        Ok(scorer.with_dense(pooler, Activation::Tanh))
    }

    fn forward(&self, texts: &[EncoderText<'_>], compute: Compute) -> Result<Rows> {
        let batch = Batch::new(texts, compute);
        let words = self.words.forward(&batch.tokens)?;
        let types = batch.segment_rows(&self.types)?;
        let mut h = self.norm.forward(&words.add(types)?)?;
        let masks = batch.masks(None, h.dtype())?;
        for layer in &self.layers {
            h = layer.forward(&h, &batch, &masks, &self.rope)?;
        }
        Ok(batch.rows(h))
    }

    fn sizes(&self) -> EncoderSizes {
        self.sizes
    }
}
