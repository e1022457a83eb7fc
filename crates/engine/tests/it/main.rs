//! The engine on tiny real checkpoints, through nothing but its public face.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod batching;
mod constrained;
mod encoding;
mod models;
mod parity;
mod prompt_limit;
mod sampling;
mod stopping;
mod support;
