//! KV caches: one kind a file behind [`LayerCache`].
//!
//! A cache both keeps keys and values and attends over them, so a model never knows how they are
//! stored.

use mlx_rs::Array;

use crate::Result;

/// Keys and values of one layer of one sequence.
pub trait LayerCache: std::fmt::Debug {
    /// Appends `keys` and `values` (`[1, kv_heads, length, head_dim]`, already rotated) and returns
    /// the attention of `queries` (`[1, heads, length, head_dim]`) over all that each may see:
    /// causal, and within the layer's window where it has one.
    fn attend(&mut self, queries: &Array, keys: Array, values: Array, scale: f32) -> Result<Array>;

    /// Tokens appended so far, which is the position of the next one.
    fn offset(&self) -> usize;

    /// Forgets the last `count` tokens; `false` when this kind no longer can.
    fn trim(&mut self, count: usize) -> bool;

    /// Bytes held.
    fn size_bytes(&self) -> usize;

    /// Arrays that must be evaluated to let go of the graph that made them.
    fn arrays(&self) -> Vec<&Array>;
}

/// What to keep and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheOptions {
    /// Quantize keys and values; `None` keeps the compute dtype.
    pub quantization: Option<KvQuantization>,
}

/// Affine quantization of keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvQuantization {
    pub bits: i32,
    pub group_size: i32,
    /// Tokens kept in full precision before quantization starts.
    pub start: usize,
}

/// All layers of one sequence.
#[derive(Debug)]
pub struct SequenceCache {
    pub layers: Vec<Box<dyn LayerCache>>,
}

impl SequenceCache {
    /// Tokens in the cache.
    pub fn offset(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.offset())
    }

    /// Bytes of all layers.
    pub fn size_bytes(&self) -> usize {
        self.layers.iter().map(|layer| layer.size_bytes()).sum()
    }

    /// Arrays of all layers, for evaluation.
    pub fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.layers.iter().flat_map(|layer| layer.arrays())
    }
}
