//! Architectures: one file each, named as config.json's `model_type` names it.
//!
//! To add one, write its file, name it in `architectures!` below and add a parity fixture.

use serde::de::DeserializeOwned;

use crate::{Model, ModelError, Result, weights::Weights};

/// How a family of checkpoints becomes a [`Model`].
pub(crate) trait Architecture: Model + Sized + 'static {
    /// The settings of config.json that the computation depends on.
    type Config: DeserializeOwned;

    /// Values of `model_type` with this layout.
    const MODEL_TYPES: &'static [&'static str];

    /// Takes every tensor it needs out of `weights`, and says which others to ignore.
    fn build(config: Self::Config, weights: &mut Weights) -> Result<Self>;
}

/// Declares the modules and the table from `model_type` to architecture.
macro_rules! architectures {
    ($($module:ident::$name:ident),+ $(,)?) => {
        $(mod $module;)+

        /// Builds the architecture of `model_type`.
        pub(crate) fn build(
            model_type: &str,
            config: serde_json::Value,
            weights: &mut Weights,
        ) -> Result<Box<dyn Model>> {
            $(
                if $module::$name::MODEL_TYPES.contains(&model_type) {
                    let config = serde_json::from_value(config)?;
                    return Ok(Box::new($module::$name::build(config, weights)?));
                }
            )+
            Err(ModelError::UnknownArchitecture(model_type.to_owned()))
        }

        /// Every `model_type` that can be loaded.
        pub fn model_types() -> impl Iterator<Item = &'static str> {
            [$($module::$name::MODEL_TYPES),+].into_iter().flatten().copied()
        }
    };
}

architectures! {
    gemma3_text::Gemma3Text,
    llama::Llama,
    phi3::Phi3,
    qwen2::Qwen2,
    qwen3::Qwen3,
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
