//! Runs models: the MLX thread, the scheduler that lets sequences share it, sampling, and the
//! [`Engine`] that puts all of it behind [`macmlx_inference::Backend`].
//!
//! Arrays live on one thread; channels carry tokens, text and plain structs. No MLX type appears
//! in this crate's public signatures.

mod encode;
mod engine;
mod error;
mod job;
mod masks;
mod options;
mod output;
mod pool;
mod profile;
mod sampling;
mod scheduler;
mod thread;

pub use engine::Engine;
pub use options::{EngineOptions, KvQuantization};
pub use thread::wait_for_end;

#[cfg(test)]
extern crate self as macmlx_engine;
#[cfg(test)]
#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "shared with the tests outside the crate")]
mod support;
#[cfg(test)]
mod tests;
