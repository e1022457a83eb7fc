//! Layers that architectures are built from.
//!
//! Hidden states are `[rows, features]`: the new tokens of all sequences end to end, or in encoders
//! the tokens of all texts, each padded to the longest.

mod activation;
mod attention;
mod embedding;
mod linear;
mod mlp;
mod norm;
mod output;
mod post_norm;
mod projections;
mod rope;
mod self_attention;
mod step;

pub(crate) use activation::Activation;
pub(crate) use attention::{Attention, Heads};
pub(crate) use embedding::Embedding;
pub(crate) use linear::Linear;
pub(crate) use mlp::GatedMlp;
pub(crate) use norm::{LayerNorm, Norm, RmsNorm};
pub(crate) use output::Output;
pub(crate) use post_norm::{PostNormBlock, PostNormNames, PostNormShape};
pub(crate) use projections::Projections;
pub(crate) use rope::{Rope, RopeConfig};
pub(crate) use self_attention::SelfAttention;
pub(crate) use step::Step;
