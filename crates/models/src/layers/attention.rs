//! Attention of each sequence over its own cache, for projections that all sequences share.

use mlx_rs::{Array, ops};

use super::{Rope, Step};
use crate::Result;

/// Numbers and sizes of an attention layer's heads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) queries: i32,
    pub(crate) kv: i32,
    pub(crate) dim: i32,
    /// Factor on the scores.
    pub(crate) scale: f32,
}

impl Heads {
    /// Rotates, appends to the caches of `layer` and attends.
    ///
    /// `queries`, `keys` and `values` have the rows of all segments in order, each row its heads
    /// end to end (or already split). The answer is `[rows, heads * dim]`.
    pub(crate) fn attend(
        &self,
        (queries, keys, values): (&Array, &Array, &Array),
        rope: Option<&Rope>,
        layer: usize,
        step: &mut Step<'_, '_>,
    ) -> Result<Array> {
        if step.segments.len() == 1 {
            return self.attend_segment((queries, keys, values), rope, layer, 0, step);
        }
        if let Some(positions) = &step.positions {
            let batch = step.total;
            let mut queries = queries.reshape(&[batch, self.queries, 1, self.dim])?;
            let mut keys = keys.reshape(&[batch, self.kv, 1, self.dim])?;
            let values = values.reshape(&[batch, self.kv, 1, self.dim])?;
            if let Some(rope) = rope {
                queries = rope.rotate_each(&queries, positions)?;
                keys = rope.rotate_each(&keys, positions)?;
            }
            let queries = queries.split_at_indices(&step.borders, 0)?;
            let keys = keys.split_at_indices(&step.borders, 0)?;
            let values = values.split_at_indices(&step.borders, 0)?;
            let rows = step
                .segments
                .iter_mut()
                .zip(queries)
                .zip(keys.into_iter().zip(values));
            let attended = rows
                .map(|((segment, queries), (keys, values))| {
                    segment.cache.layers[layer].attend(&queries, keys, values, self.scale)
                })
                .collect::<Result<Vec<_>>>()?;
            let attended = ops::concatenate(&attended, 0)?;
            return Ok(attended.reshape(&[batch, self.queries * self.dim])?);
        }
        let queries = queries.split_at_indices(&step.borders, 0)?;
        let keys = keys.split_at_indices(&step.borders, 0)?;
        let values = values.split_at_indices(&step.borders, 0)?;
        let mut attended = Vec::with_capacity(queries.len());
        for (index, ((queries, keys), values)) in queries.iter().zip(&keys).zip(&values).enumerate()
        {
            attended.push(self.attend_segment(
                (queries, keys, values),
                rope,
                layer,
                index,
                step,
            )?);
        }
        Ok(ops::concatenate(&attended, 0)?)
    }

    /// [`Self::attend`] for the rows of one segment.
    fn attend_segment(
        &self,
        (queries, keys, values): (&Array, &Array, &Array),
        rope: Option<&Rope>,
        layer: usize,
        index: usize,
        step: &mut Step<'_, '_>,
    ) -> Result<Array> {
        let segment = &mut step.segments[index];
        let length = segment.length as i32;
        let cache = &mut segment.cache.layers[layer];
        let offset = cache.offset() as i32;
        let mut queries = self.by_head(queries, self.queries, length)?;
        let mut keys = self.by_head(keys, self.kv, length)?;
        let values = self.by_head(values, self.kv, length)?;
        if let Some(rope) = rope {
            queries = rope.rotate(&queries, offset)?;
            keys = rope.rotate(&keys, offset)?;
        }
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
}
