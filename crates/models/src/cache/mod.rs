//! KV caches: one kind a file behind [`LayerCache`].
//!
//! A cache both keeps keys and values and attends over them, so a model never knows how they are
//! stored.

mod attention;
mod buffer;
mod full;
mod quantized;
mod rotating;
mod unkept;

pub use macmlx_fit::KvQuantization;
use mlx_rs::Array;

use self::{full::FullCache, quantized::QuantizedCache, rotating::RotatingCache, unkept::Unkept};
use crate::{Result, compute::Compute, weights::Weights};

/// Keys and values of one layer of one sequence.
pub trait LayerCache: std::fmt::Debug {
    /// Appends `keys` and `values` (`[1, kv_heads, length, head_dim]`, already rotated) and returns
    /// the attention of `queries` (`[1, heads, length, head_dim]`) over all that each may see:
    /// causal, and within the layer's window where it has one.
    fn attend(&mut self, queries: &Array, keys: Array, values: Array, scale: f32) -> Result<Array>;

    /// Tokens appended so far, which is the position of the next one.
    fn offset(&self) -> usize;

    /// Forgets the last `count` tokens; `false` when this kind no longer can, and then nothing
    /// changed.
    fn trim(&mut self, count: usize) -> bool;

    /// Bytes held.
    fn size_bytes(&self) -> usize;

    /// Arrays that must be evaluated to let go of the graph that made them.
    fn arrays(&self) -> Vec<&Array>;

    /// A second cache with the same tokens. Cheap: arrays are shared until one of the two appends.
    fn duplicate(&self) -> Box<dyn LayerCache>;
}

/// What to keep and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheOptions {
    /// Quantize keys and values; `None` keeps the compute dtype. Layers with a sliding window are
    /// small and stay as they are.
    pub quantization: Option<KvQuantization>,
}

/// Tokens that a layer sees, itself included; `None` is all.
pub(crate) type LayerWindow = Option<usize>;

/// What the caches of a model must know about it.
#[derive(Debug, Clone)]
pub(crate) struct CacheShape {
    /// One cache for each layer.
    pub(crate) windows: Vec<LayerWindow>,
    pub(crate) head_dim: i32,
    pub(crate) compute: Compute,
}

impl CacheShape {
    pub(crate) fn new(windows: Vec<LayerWindow>, head_dim: i32, weights: &Weights) -> Self {
        Self {
            windows,
            head_dim,
            compute: weights.compute,
        }
    }

    /// A cache for a sequence that is read once, and all at once.
    pub(crate) fn unkept(&self) -> SequenceCache {
        let layer = |_| -> Box<dyn LayerCache> { Box::new(Unkept::new(self.compute)) };
        SequenceCache {
            layers: self.windows.iter().map(layer).collect(),
        }
    }

    /// An empty cache for one sequence.
    pub(crate) fn empty(&self, options: &CacheOptions) -> Result<SequenceCache> {
        let layer = |window: &LayerWindow| -> Result<Box<dyn LayerCache>> {
            Ok(match (window, options.quantization) {
                (Some(window), _) => Box::new(RotatingCache::new(*window, self.compute)),
                (None, Some(how)) => Box::new(QuantizedCache::new(how, self)?),
                (None, None) => Box::new(FullCache::new(self.compute)),
            })
        };
        Ok(SequenceCache {
            layers: self.windows.iter().map(layer).collect::<Result<_>>()?,
        })
    }
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

    /// A second cache with the same tokens.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self {
            layers: self.layers.iter().map(|layer| layer.duplicate()).collect(),
        }
    }
}
