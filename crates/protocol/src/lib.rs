//! Dialects as pure functions: what a client sends becomes a `GenerateRequest`, what the backend
//! says becomes the client's frames. No HTTP here.
//!
//! A generating endpoint is one file: wire types, translation, stream encoder and reply together,
//! behind [`Endpoint`] and [`StreamEncoder`], and a line of the table in [`endpoints`]. One handler in
//! the server serves them all.

pub mod anthropic;
mod body;
mod described;
mod dialect;
mod encoding;
mod endpoint;
pub mod endpoints;
mod error;
mod function;
mod grammar;
mod image;
pub mod json;
mod keep_alive;
pub mod lm_studio;
pub mod ollama;
mod open_calls;
pub mod openai;
mod parts;
mod range;
mod sampling;
mod sentinel;
mod thought;
mod vector;
mod words;

pub use body::Body;
pub use described::Described;
pub use dialect::Dialect;
pub use encoding::Encoding;
pub use endpoint::{Context, Endpoint, Frame, Framing, Reply, StreamEncoder, Translation};
pub use error::Error;
pub use words::Vocabulary;
