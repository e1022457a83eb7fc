//! Keys and values that nothing comes after.

use mlx_rs::Array;

use super::{
    LayerCache,
    attention::{attend_many, attend_one},
};
use crate::{Result, compute::Compute};

/// Attends over what it is given and keeps none of it.
#[derive(Debug, Clone)]
pub(super) struct Unkept {
    compute: Compute,
}

impl Unkept {
    pub(super) fn new(compute: Compute) -> Self {
        Self { compute }
    }
}

impl LayerCache for Unkept {
    fn attend(&mut self, queries: &Array, keys: Array, values: Array, scale: f32) -> Result<Array> {
        if queries.dim(2) == 1 {
            attend_one(queries, &keys, &values, scale, self.compute)
        } else {
            attend_many(queries, &keys, &values, scale, None)
        }
    }

    fn offset(&self) -> usize {
        0
    }

    fn trim(&mut self, count: usize) -> bool {
        count == 0
    }

    fn size_bytes(&self) -> usize {
        0
    }

    fn arrays(&self) -> Vec<&Array> {
        Vec::new()
    }

    fn duplicate(&self) -> Box<dyn LayerCache> {
        Box::new(self.clone())
    }
}
