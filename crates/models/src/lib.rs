//! Models on MLX: architectures, layers, caches, weight loading and quantization.

pub mod cache;
mod error;
mod forward;

pub use error::{ModelError, Result};
pub use forward::{LogitsRows, Model, Segment};
