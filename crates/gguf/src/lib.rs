//! GGUF files become MLX model folders, value for value.
//!
//! What a quantized block of GGUF means is exactly what MLX's affine quantization with group 32
//! means for `Q4_0`, `Q4_1` and `Q8_0`, so those are repacked rather than requantized. Every other
//! quantized type is refused by name: an import never changes a weight.

mod architecture;
mod config;
mod error;
mod header;
mod import;
mod metadata;
mod plan;
mod repack;
mod tokenizer;
mod write;

pub use error::Error;
pub use import::{Imported, Options, Progress, default_id, import};
