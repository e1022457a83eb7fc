//! Attention over keys and values that a cache holds.

use mlx_rs::{
    Array,
    fast::{self, ScaledDotProductAttentionMask},
    ops,
};

use crate::{Result, compute::Compute};

/// Attention of one query a head (`[1, heads, 1, dim]`) over all of `keys` and `values`
/// (`[1, kv_heads, rows, dim]`).
pub(super) fn attend_one(
    queries: &Array,
    keys: &Array,
    values: &Array,
    scale: f32,
    compute: Compute,
) -> Result<Array> {
    if !compute.saves_operations {
        return Ok(fast::scaled_dot_product_attention(
            queries, keys, values, scale, None, None,
        )?);
    }
    // Query heads that share keys are rows of one product.
    let (heads, kv, dim) = (queries.dim(1), keys.dim(1), queries.dim(3));
    let grouped = queries
        .multiply(Array::from_f32(scale))?
        .reshape(&[1, kv, heads / kv, dim])?;
    let scores = ops::matmul(grouped, keys.swap_axes(2, 3)?)?;
    let answer = ops::matmul(ops::softmax_axis(scores, -1, None)?, values)?;
    Ok(answer.reshape(&[1, heads, 1, dim])?)
}

/// Attention of several queries a head, the last of which sees every key: causal, or by `mask`.
pub(super) fn attend_many(
    queries: &Array,
    keys: &Array,
    values: &Array,
    scale: f32,
    mask: Option<&Array>,
) -> Result<Array> {
    let mask = mask.map_or(ScaledDotProductAttentionMask::Causal, Into::into);
    Ok(fast::scaled_dot_product_attention(
        queries, keys, values, scale, mask, None,
    )?)
}
