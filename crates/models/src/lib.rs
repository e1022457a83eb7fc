//! Models on MLX: architectures, layers, caches, weight loading and quantization.
//!
//! [`load`] turns a folder into a [`LoadedModel`]; its [`Model`] runs one [`Model::forward`] at a
//! time over any number of sequences. Arrays stay on the thread that made them.

mod arch;
pub mod cache;
mod compute;
mod encoder;
mod error;
mod forward;
mod layers;
mod load;
mod weights;

pub use arch::model_types;
pub use compute::ComputePolicy;
pub use encoder::{Encoder, EncoderText};
pub use error::{ModelError, Result};
pub use forward::{LogitsRows, Model, Segment};
pub use load::{LoadOptions, LoadedModel, ModelFacts, load};
