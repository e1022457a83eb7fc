//! Layers that architectures are built from.
//!
//! Hidden states are `[rows, features]`: the new tokens of all sequences end to end.

mod attention;
mod embedding;
mod linear;
mod mlp;
mod norm;
mod output;
mod projections;
mod rope;
mod step;

pub(crate) use attention::Heads;
pub(crate) use embedding::Embedding;
pub(crate) use linear::Linear;
pub(crate) use mlp::{Activation, GatedMlp};
pub(crate) use norm::RmsNorm;
pub(crate) use output::Output;
pub(crate) use projections::Projections;
pub(crate) use rope::{Rope, RopeConfig};
pub(crate) use step::Step;
