//! Attention of each sequence over its own cache, for projections that all sequences share.

use mlx_rs::{Array, ops};

use super::{Linear, Projections, Rope, Step};
use crate::{Result, weights::Scope};

/// A decoder's attention layer that does no more to queries and keys than rotate them.
#[derive(Debug)]
pub(crate) struct Attention {
    pub(crate) qkv: Projections<3>,
    pub(crate) o_proj: Linear,
    pub(crate) heads: Heads,
}

impl Attention {
    /// Takes `q_proj`, `k_proj`, `v_proj` and `o_proj`. The biases are those of the first three and
    /// of the last.
    pub(crate) fn load(
        scope: &mut Scope<'_>,
        hidden: i32,
        heads: Heads,
        (qkv_bias, o_bias): (bool, bool),
    ) -> Result<Self> {
        let Heads {
            queries, kv, dim, ..
        } = heads;
        let qkv = [
            ("q_proj", queries * dim),
            ("k_proj", kv * dim),
            ("v_proj", kv * dim),
        ];
        Ok(Self {
            qkv: Projections::load(scope, hidden, qkv, qkv_bias)?,
            o_proj: Linear::load(&mut scope.at("o_proj"), queries * dim, hidden, o_bias)?,
            heads,
        })
    }

    pub(crate) fn forward(
        &self,
        x: &Array,
        rope: &Rope,
        layer: usize,
        step: &mut Step<'_, '_>,
    ) -> Result<Array> {
        let qkv = self.qkv.forward(x)?;
        let attended = self.heads.attend(qkv.each_ref(), rope, layer, step)?;
        self.o_proj.forward(&attended)
    }
}

/// Numbers and sizes of an attention layer's heads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) queries: i32,
    pub(crate) kv: i32,
    pub(crate) dim: i32,
    /// Factor on the scores.
    pub(crate) scale: f32,
}

/// Queries, keys and values of some rows, each row its heads end to end or already split.
pub(crate) type Qkv<'a> = [&'a Array; 3];

impl Heads {
    /// Rotates, appends to the caches of `layer` and attends; `qkv` has the rows of all segments in
    /// order. The answer is `[rows, heads * dim]`.
    pub(crate) fn attend(
        &self,
        qkv: Qkv<'_>,
        rope: &Rope,
        layer: usize,
        step: &mut Step<'_, '_>,
    ) -> Result<Array> {
        if let Some(rotation) = step.rotation(rope)? {
            let [queries, keys, values] = self.batch(qkv, step.total, &[self.dim])?;
            let shaped = |x: Array, heads| x.reshape(&[step.total, heads, 1, self.dim]);
            let queries = shaped(ops::matmul(queries, &rotation)?, self.queries)?;
            let keys = shaped(ops::matmul(keys, &rotation)?, self.kv)?;
            return self.attend_batch([queries, keys, shaped(values, self.kv)?], layer, step);
        }
        if step.segments.len() == 1 {
            return self.attend_segment(qkv, rope, layer, 0, step);
        }
        if let Some(positions) = &step.positions {
            let [queries, keys, values] = self.batch(qkv, step.total, &[1, self.dim])?;
            let queries = rope.rotate_each(&queries, positions)?;
            let keys = rope.rotate_each(&keys, positions)?;
            return self.attend_batch([queries, keys, values], layer, step);
        }
        let [queries, keys, values] = split(qkv, &step.borders)?;
        let mut attended = Vec::with_capacity(step.segments.len());
        for (index, ((queries, keys), values)) in queries.iter().zip(&keys).zip(&values).enumerate()
        {
            let qkv = [queries, keys, values];
            attended.push(self.attend_segment(qkv, rope, layer, index, step)?);
        }
        Ok(ops::concatenate(&attended, 0)?)
    }

    /// One row a sequence: `[sequences, heads, 1, dim]` each, rotated.
    fn attend_batch(
        &self,
        [queries, keys, values]: [Array; 3],
        layer: usize,
        step: &mut Step<'_, '_>,
    ) -> Result<Array> {
        let attended = if let [segment] = &mut *step.segments {
            segment.cache.layers[layer].attend(&queries, keys, values, self.scale)?
        } else {
            let [queries, keys, values] = split([&queries, &keys, &values], &step.borders)?;
            let rows = queries.iter().zip(keys).zip(values);
            let attended = step.segments.iter_mut().zip(rows);
            let attended = attended.map(|(segment, ((queries, keys), values))| {
                segment.cache.layers[layer].attend(queries, keys, values, self.scale)
            });
            ops::concatenate(&attended.collect::<Result<Vec<_>>>()?, 0)?
        };
        Ok(attended.reshape(&[step.total, self.queries * self.dim])?)
    }

    /// The rows of one segment.
    fn attend_segment(
        &self,
        [queries, keys, values]: Qkv<'_>,
        rope: &Rope,
        layer: usize,
        index: usize,
        step: &mut Step<'_, '_>,
    ) -> Result<Array> {
        let segment = &mut step.segments[index];
        let length = segment.length as i32;
        let cache = &mut segment.cache.layers[layer];
        let offset = cache.offset() as i32;
        let queries = rope.rotate(&self.by_head(queries, self.queries, length)?, offset)?;
        let keys = rope.rotate(&self.by_head(keys, self.kv, length)?, offset)?;
        let values = self.by_head(values, self.kv, length)?;
        let mut attended = cache.attend(&queries, keys, values, self.scale)?;
        if length > 1 {
            attended = attended.transpose_axes(&[0, 2, 1, 3])?;
        }
        Ok(attended.reshape(&[length, self.queries * self.dim])?)
    }

    /// `[length, heads * dim]` to `[1, heads, length, dim]`.
    fn by_head(&self, x: &Array, heads: i32, length: i32) -> Result<Array> {
        if length == 1 {
            return Ok(x.reshape(&[1, heads, 1, self.dim])?);
        }
        Ok(x.reshape(&[1, length, heads, self.dim])?
            .transpose_axes(&[0, 2, 1, 3])?)
    }

    /// `[sequences, heads * dim]` to `[sequences, heads]` and `head` shape, each.
    fn batch(
        &self,
        [queries, keys, values]: Qkv<'_>,
        sequences: i32,
        head: &[i32],
    ) -> Result<[Array; 3]> {
        let reshape = |x: &Array, heads| x.reshape(&[&[sequences, heads], head].concat());
        Ok([
            reshape(queries, self.queries)?,
            reshape(keys, self.kv)?,
            reshape(values, self.kv)?,
        ])
    }
}

/// Each of the three by segment.
fn split(qkv: Qkv<'_>, borders: &[i32]) -> Result<[Vec<Array>; 3]> {
    let [queries, keys, values] = qkv.map(|x| x.split_at_indices(borders, 0));
    Ok([queries?, keys?, values?])
}
