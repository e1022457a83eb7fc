//! The engine on tiny real checkpoints, through nothing but its public face.

mod batching;
mod models;
mod parity;
mod sampling;
mod stopping;
mod support;
