//! What is on disk and how it gets there: local models, downloads from the hub, imports of GGUF.

pub mod disk;
pub mod downloads;
pub mod gguf;
pub mod hub;
pub mod models;
mod safetensors;
