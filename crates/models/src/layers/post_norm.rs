//! The block of BERT and its relatives: each half is normalized after its residual is added.

use mlx_rs::Array;

use super::{Activation, LayerNorm, Linear, Projections, SelfAttention};
use crate::{
    Result,
    encoder::{Batch, Masks},
    weights::Scope,
};

/// Sizes and settings of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PostNormShape {
    pub(crate) hidden: i32,
    pub(crate) intermediate: i32,
    pub(crate) heads: i32,
    pub(crate) eps: f32,
    pub(crate) activation: Activation,
}

/// What a family calls the parts of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PostNormNames {
    /// Queries, keys and values.
    pub(crate) qkv: [&'static str; 3],
    pub(crate) attention_output: &'static str,
    pub(crate) attention_norm: &'static str,
    pub(crate) up: &'static str,
    pub(crate) down: &'static str,
    pub(crate) norm: &'static str,
}

/// Attention and a plain feed-forward part.
#[derive(Debug)]
pub(crate) struct PostNormBlock {
    attention: SelfAttention,
    attention_norm: LayerNorm,
    up: Linear,
    activation: Activation,
    down: Linear,
    norm: LayerNorm,
}

impl PostNormBlock {
    pub(crate) fn load(
        shape: PostNormShape,
        names: &PostNormNames,
        scope: &mut Scope<'_>,
    ) -> Result<Self> {
        let PostNormShape {
            hidden,
            intermediate,
            heads,
            eps,
            activation,
        } = shape;
        let qkv = Projections::load(scope, hidden, names.qkv.map(|name| (name, hidden)), true)?;
        let output = Linear::load(&mut scope.at(names.attention_output), hidden, hidden, true)?;
        Ok(Self {
            attention: SelfAttention::new(qkv, output, heads, scope.compute()),
            attention_norm: LayerNorm::load(
                &mut scope.at(names.attention_norm),
                hidden,
                eps,
                true,
            )?,
            up: Linear::load(&mut scope.at(names.up), hidden, intermediate, true)?,
            activation,
            down: Linear::load(&mut scope.at(names.down), intermediate, hidden, true)?,
            norm: LayerNorm::load(&mut scope.at(names.norm), hidden, eps, true)?,
        })
    }

    /// `[rows, hidden]` to the same shape.
    pub(crate) fn forward(&self, x: &Array, batch: &Batch, masks: &Masks) -> Result<Array> {
        let attended = self.attention.forward(x, batch, masks, None)?;
        let h = self.attention_norm.forward(&attended.add(x)?)?;
        let mlp = self.activation.apply(&self.up.forward(&h)?)?;
        self.norm.forward(&self.down.forward(&mlp)?.add(h)?)
    }
}
