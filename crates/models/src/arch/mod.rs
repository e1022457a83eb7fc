//! Architectures: one file each, named as config.json's `model_type` names it.
//!
//! To add one, write its file, name it here (as a module and in `architectures!`) and add a parity
//! fixture. The same `model_type` may generate and encode: the loader says what for.

mod bert;
mod distilbert;
mod gemma3;
mod gemma3_text;
mod granite;
mod llama;
mod modernbert;
mod nomic_bert;
mod phi3;
mod qwen2;
mod qwen3;
mod roberta;
mod smollm3;
mod starcoder2;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    Encoder, Model, ModelError, Result,
    compute::Compute,
    encoder::{AnswerTokens, EncoderSizes, EncoderText, Pool, Rows, Scorer},
    load::EncoderBuilder,
    weights::Weights,
};

/// How a family of checkpoints becomes a [`Model`].
pub(crate) trait Architecture {
    /// The settings of config.json that the computation depends on.
    type Config: DeserializeOwned;

    type Model: Model + 'static;

    /// Values of `model_type` with this layout.
    const MODEL_TYPES: &'static [&'static str];

    /// Settings that exporters leave out of config.json where they equal these. What estimates memory
    /// reads them too.
    fn left_out() -> Value {
        Value::Null
    }

    /// Takes every tensor it needs out of `weights`, and says which others to ignore.
    fn build(config: Self::Config, weights: &mut Weights) -> Result<Self::Model>;
}

/// How a family of checkpoints becomes an [`Encoder`].
pub(crate) trait EncoderArchitecture: Sized + std::fmt::Debug + 'static {
    /// The settings of config.json that the computation depends on.
    type Config: DeserializeOwned;

    /// Values of `model_type` with this layout.
    const MODEL_TYPES: &'static [&'static str];

    /// How texts become vectors where the folder does not say.
    const POOL: Pool;

    /// Starts of names, at the root or within it, of tensors that serve other purposes: position
    /// ids that count up, heads of pre-training.
    const UNUSED: &'static [&'static str];

    /// Tokens of the longest text, special ones included. `None`: the config sets no limit.
    fn positions(config: &Self::Config) -> Option<usize>;

    /// Takes what hidden states need out of `weights`.
    fn build(config: &Self::Config, weights: &mut Weights) -> Result<Self>;

    /// Takes the head of `…ForSequenceClassification`, which must have one label.
    fn build_scorer(config: &Self::Config, weights: &mut Weights) -> Result<Scorer>;

    /// The head that scores by how much more likely "yes" is than "no" as the next token.
    fn build_answer(
        &self,
        _config: &Self::Config,
        _weights: &mut Weights,
        _answers: AnswerTokens,
    ) -> Result<Scorer> {
        Err(ModelError::unsupported(
            "architectures",
            "this model cannot rerank: it has no head of one label, and it writes no answers",
        ))
    }

    /// Hidden states of all tokens of `texts`, of which there is at least one.
    fn forward(&self, texts: &[EncoderText<'_>], compute: Compute) -> Result<Rows>;

    fn sizes(&self) -> EncoderSizes;
}

/// Declares the tables from `model_type` to what generates and what encodes.
macro_rules! architectures {
    ($($module:ident {
        $(generates $model:ident)? $(,)? $(encodes $encoder:ident)?
    })+) => {
        /// Builds the architecture of `model_type`.
        pub(crate) fn build(
            model_type: &str,
            mut config: Value,
            weights: &mut Weights,
        ) -> Result<Box<dyn Model>> {
            $($(
                if $module::$model::MODEL_TYPES.contains(&model_type) {
                    macmlx_fit::fill_in(&mut config, &$module::$model::left_out());
                    let config = macmlx_json::read(&config)?;
                    return Ok(Box::new($module::$model::build(config, weights)?));
                }
            )?)+
            Err(ModelError::UnknownArchitecture(model_type.to_owned()))
        }

        /// Builds the encoder of `model_type`.
        pub(crate) fn build_encoder(
            model_type: &str,
            config: Value,
            builder: EncoderBuilder<'_>,
        ) -> Result<Box<dyn Encoder>> {
            $($(
                if $module::$encoder::MODEL_TYPES.contains(&model_type) {
                    return builder.build::<$module::$encoder>(&macmlx_json::read(&config)?);
                }
            )?)+
            Err(ModelError::UnknownArchitecture(model_type.to_owned()))
        }

        /// Every `model_type` that can be loaded to generate.
        pub fn model_types() -> impl Iterator<Item = &'static str> {
            [$($($module::$model::MODEL_TYPES,)?)+].into_iter().flatten().copied()
        }

        /// What config.json leaves out, of each `model_type` that can be loaded to generate.
        pub fn left_out() -> macmlx_fit::LeftOut {
            let mut all = macmlx_fit::LeftOut::default();
            $($(
                for model_type in $module::$model::MODEL_TYPES {
                    all.insert((*model_type).to_owned(), $module::$model::left_out());
                }
            )?)+
            all
        }

        /// Tokens of the longest text that an encoder with this `config.json` reads. `None`: the
        /// architecture is no encoder, or has no limit.
        pub fn encoder_positions(config: &Value) -> Option<usize> {
            let model_type = config["model_type"].as_str()?;
            $($(
                if $module::$encoder::MODEL_TYPES.contains(&model_type) {
                    return $module::$encoder::positions(&macmlx_json::read(config).ok()?);
                }
            )?)+
            None
        }

        /// Every `model_type` that can be loaded for embeddings or to rerank.
        pub fn encoder_types() -> impl Iterator<Item = &'static str> {
            [$($($module::$encoder::MODEL_TYPES,)?)+].into_iter().flatten().copied()
        }
    };
}

architectures! {
    bert { encodes Bert }
    distilbert { encodes DistilBert }
    gemma3 { generates Gemma3 }
    gemma3_text { generates Gemma3Text }
    granite { generates Granite }
    llama { generates Llama }
    modernbert { encodes ModernBert }
    nomic_bert { encodes NomicBert }
    phi3 { generates Phi3 }
    qwen2 { generates Qwen2 }
    qwen3 { generates Qwen3, encodes Qwen3Encoder }
    roberta { encodes Roberta }
    smollm3 { generates SmolLm3 }
    starcoder2 { generates StarCoder2 }
}

/// Says that a window of the checkpoint is not applied, as it is not in mlx-lm: the answers differ
/// from the original model's once a sequence is longer.
fn warn_of_unused_window(window: Option<usize>) {
    if let Some(window) = window {
        tracing::warn!(
            window,
            "sliding_window of this checkpoint is not applied, as in mlx-lm"
        );
    }
}
