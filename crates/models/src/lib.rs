//! Models on MLX: architectures, layers, caches, weight loading and quantization.
//!
//! [`load`] turns a folder into a [`LoadedModel`]; its [`Model`] runs one [`Model::forward`] at a
//! time over any number of sequences. [`load_encoder`] does the same for models that read whole
//! texts. Arrays stay on the thread that made them.

mod arch;
pub mod cache;
mod compute;
mod encoder;
mod error;
mod forward;
mod layers;
mod load;
mod weights;

pub use arch::{encoder_positions, encoder_types, left_out, model_types};
pub use compute::ComputePolicy;
pub use encoder::{AnswerTokens, Encoder, EncoderText};
pub use error::{ModelError, Result};
pub use forward::{LogitsRows, Model, Segment};
pub use load::{
    EncoderOptions, LoadOptions, LoadedEncoder, LoadedModel, ModelFacts, load, load_encoder,
};
pub use macmlx_fit::context_length;
