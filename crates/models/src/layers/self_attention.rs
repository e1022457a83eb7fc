//! Attention of whole texts over themselves, in both directions.

use mlx_rs::{
    Array,
    fast::{self, ScaledDotProductAttentionMask},
};

use super::{Linear, Projections, Rope};
use crate::{Result, encoder::Batch};

/// Projections of rows, attention within each text, and the projection of what it gives.
#[derive(Debug)]
pub(crate) struct SelfAttention {
    qkv: Projections<3>,
    output: Linear,
    heads: i32,
}

impl SelfAttention {
    pub(crate) fn new(qkv: Projections<3>, output: Linear, heads: i32) -> Self {
        Self { qkv, output, heads }
    }

    /// `[rows, features]` of the batch to the same shape. `mask` is added to the scores; `rope`
    /// rotates queries and keys.
    pub(crate) fn forward(
        &self,
        x: &Array,
        batch: &Batch,
        mask: Option<&Array>,
        rope: Option<&Rope>,
    ) -> Result<Array> {
        let [queries, keys, values] = self.qkv.forward(x)?;
        let dim = queries.dim(-1) / self.heads;
        let by_head = |x: Array| -> Result<Array> {
            Ok(x.reshape(&[batch.texts, batch.length, self.heads, dim])?
                .transpose_axes(&[0, 2, 1, 3])?)
        };
        let rotated = |x: Array| match rope {
            Some(rope) => rope.rotate(&x, 0),
            None => Ok(x),
        };
        let attended = fast::scaled_dot_product_attention(
            rotated(by_head(queries)?)?,
            rotated(by_head(keys)?)?,
            by_head(values)?,
            (dim as f32).powf(-0.5),
            mask.map(ScaledDotProductAttentionMask::from),
            None,
        )?;
        let attended = attended.transpose_axes(&[0, 2, 1, 3])?;
        self.output
            .forward(&attended.reshape(&[-1, self.heads * dim])?)
    }
}
