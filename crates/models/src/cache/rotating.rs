//! The newest tokens only, for layers with a sliding window.
//!
//! Invariants: `held` rows of the arrays are in use. While `offset` is below the window they are in
//! order; once it is not, a decode step overwrites the oldest row, at `next`. Keys carry their
//! position, so attention does not care where a row lies.

use mlx_rs::{Array, ops};

use super::{
    LayerCache,
    attention::{attend_many, attend_one},
    buffer::{rows_of, write},
};
use crate::{Result, compute::Compute};

/// Rows allocated at a time while the window fills.
const STEP: i32 = 256;

/// Keeps the newest tokens in the compute dtype.
#[derive(Debug, Clone)]
pub(super) struct RotatingCache {
    /// Tokens that a token sees, itself included.
    window: i32,
    /// `[1, kv_heads, capacity, head_dim]`.
    arrays: Option<(Array, Array)>,
    /// Tokens ever appended.
    offset: usize,
    /// Rows in use.
    held: i32,
    /// Row of the oldest token, which the next decode step overwrites when the window is full.
    next: i32,
    compute: Compute,
}

impl RotatingCache {
    pub(super) fn new(window: usize, compute: Compute) -> Self {
        Self {
            window: window as i32,
            arrays: None,
            offset: 0,
            held: 0,
            next: 0,
            compute,
        }
    }

    /// Overwrites the oldest row, or takes a new one while the window is not full; returns all rows
    /// in use.
    fn append_one(&mut self, keys: &Array, values: &Array) -> Result<(Array, Array)> {
        let (old_keys, old_values) = match self.arrays.take() {
            None => (self.room(keys)?, self.room(values)?),
            Some((old_keys, old_values)) => {
                if self.held > self.window {
                    // A prefill chunk left more than a window: only its end can still be seen.
                    let start = self.held - self.window;
                    let end = self.held;
                    (self.held, self.next) = (self.window, 0);
                    (
                        rows_of(&old_keys, start, end)?,
                        rows_of(&old_values, start, end)?,
                    )
                } else if self.held == old_keys.dim(2) && self.held < self.window {
                    let (more_keys, more_values) = (self.room(keys)?, self.room(values)?);
                    (
                        ops::concatenate(&[old_keys, more_keys], 2)?,
                        ops::concatenate(&[old_values, more_values], 2)?,
                    )
                } else {
                    (old_keys, old_values)
                }
            }
        };
        let row = if self.held < self.window {
            self.held
        } else {
            self.next
        };
        let new_keys = write(&old_keys, row, keys)?;
        let new_values = write(&old_values, row, values)?;
        if self.held < self.window {
            self.held += 1;
        } else {
            self.next = (row + 1) % self.window;
        }
        let all = if self.held < new_keys.dim(2) {
            (
                rows_of(&new_keys, 0, self.held)?,
                rows_of(&new_values, 0, self.held)?,
            )
        } else {
            (new_keys.clone(), new_values.clone())
        };
        self.arrays = Some((new_keys, new_values));
        Ok(all)
    }

    /// Puts the rows in order, drops what no new token sees, appends, and returns all rows.
    fn append_many(&mut self, keys: Array, values: Array) -> Result<(Array, Array)> {
        let all = match self.arrays.take() {
            None => (keys, values),
            Some((old_keys, old_values)) => (
                ops::concatenate(&self.seen(&old_keys, keys)?, 2)?,
                ops::concatenate(&self.seen(&old_values, values)?, 2)?,
            ),
        };
        self.held = all.0.dim(2);
        self.next = 0;
        self.arrays = Some((all.0.clone(), all.1.clone()));
        Ok(all)
    }

    /// The newest rows of `old`, at most one less than a window, in order, then `new`.
    fn seen(&self, old: &Array, new: Array) -> Result<Vec<Array>> {
        let mut parts = Vec::with_capacity(3);
        let keep = self.held.min(self.window - 1);
        // Oldest first, rows run from `next` to `held` and then from 0 to `next`.
        let skip = self.held - keep;
        let start = self.next + skip;
        if start < self.held {
            parts.push(rows_of(old, start, self.held)?);
        }
        let wrapped = (start - self.held).max(0);
        if wrapped < self.next {
            parts.push(rows_of(old, wrapped, self.next)?);
        }
        parts.push(new);
        Ok(parts)
    }

    /// Zeros for the next rows while the window fills.
    fn room(&self, like: &Array) -> Result<Array> {
        let rows = STEP.min(self.window - self.held);
        Ok(ops::zeros_dtype(
            &[like.dim(0), like.dim(1), rows, like.dim(3)],
            like.dtype(),
        )?)
    }

    /// `[length, past + length]`: whether a query sees a key, by position and window.
    fn mask(&self, length: i32, past: i32) -> Result<Array> {
        let keys = ops::arange::<i32, i32>(None, past + length, None)?;
        let queries = ops::arange::<i32, i32>(past, past + length, None)?.reshape(&[length, 1])?;
        let causal = queries.ge(&keys)?;
        let near = queries.lt(keys.add(Array::from_int(self.window))?)?;
        Ok(causal.logical_and(near)?)
    }
}

impl LayerCache for RotatingCache {
    fn attend(&mut self, queries: &Array, keys: Array, values: Array, scale: f32) -> Result<Array> {
        let length = queries.dim(2);
        self.offset += length as usize;
        if length == 1 {
            let (keys, values) = self.append_one(&keys, &values)?;
            return attend_one(queries, &keys, &values, scale, self.compute);
        }
        let (keys, values) = self.append_many(keys, values)?;
        let past = keys.dim(2) - length;
        if past + length <= self.window {
            return attend_many(queries, &keys, &values, scale, None);
        }
        let mask = self.mask(length, past)?;
        attend_many(queries, &keys, &values, scale, Some(&mask))
    }

    fn offset(&self) -> usize {
        self.offset
    }

    fn trim(&mut self, count: usize) -> bool {
        // Past the window, the tokens that would come back into view are gone.
        if count == 0 {
            return true;
        }
        if self.offset > self.window as usize || count > self.offset {
            return false;
        }
        self.offset -= count;
        self.held -= count as i32;
        self.next = 0;
        true
    }

    fn size_bytes(&self) -> usize {
        self.arrays
            .as_ref()
            .map_or(0, |(keys, values)| keys.nbytes() + values.nbytes())
    }

    fn arrays(&self) -> Vec<&Array> {
        self.arrays
            .as_ref()
            .map_or_else(Vec::new, |(keys, values)| vec![keys, values])
    }

    fn duplicate(&self) -> Box<dyn LayerCache> {
        Box::new(self.clone())
    }
}
