//! Keys and values of every token.

use mlx_rs::Array;

use super::{
    LayerCache,
    attention::{attend_many, attend_one},
    buffer::Buffer,
};
use crate::{Result, compute::Compute};

/// Keeps everything in the compute dtype.
#[derive(Debug, Clone)]
pub(super) struct FullCache {
    keys: Buffer,
    values: Buffer,
    offset: usize,
    compute: Compute,
}

impl FullCache {
    pub(super) fn new(compute: Compute) -> Self {
        Self {
            keys: Buffer::default(),
            values: Buffer::default(),
            offset: 0,
            compute,
        }
    }

    /// The buffers, for a kind that stores the same tokens otherwise.
    pub(super) fn buffers(&self) -> Option<(&Array, &Array)> {
        Some((self.keys.array()?, self.values.array()?))
    }
}

impl LayerCache for FullCache {
    fn attend(&mut self, queries: &Array, keys: Array, values: Array, scale: f32) -> Result<Array> {
        let start = self.offset as i32;
        let length = queries.dim(2);
        let keys = self.keys.append(start, &keys)?;
        let values = self.values.append(start, &values)?;
        self.offset += length as usize;
        if length == 1 {
            attend_one(queries, &keys, &values, scale, self.compute)
        } else {
            attend_many(queries, &keys, &values, scale, None)
        }
    }

    fn offset(&self) -> usize {
        self.offset
    }

    fn trim(&mut self, count: usize) -> bool {
        let Some(offset) = self.offset.checked_sub(count) else {
            return false;
        };
        self.offset = offset;
        true
    }

    fn size_bytes(&self) -> usize {
        self.keys.size_bytes() + self.values.size_bytes()
    }

    fn arrays(&self) -> Vec<&Array> {
        self.keys
            .array()
            .into_iter()
            .chain(self.values.array())
            .collect()
    }

    fn duplicate(&self) -> Box<dyn LayerCache> {
        Box::new(self.clone())
    }
}
