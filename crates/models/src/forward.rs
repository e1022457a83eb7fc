//! One forward pass over the new tokens of any number of sequences.
//!
//! Tokens of all sequences lie end to end in one row, so projections and MLPs see one matrix, and
//! nothing is padded; only attention looks at each segment alone, with its own cache. A prefill chunk,
//! a decode step of a batch and the verification of drafted tokens are the same call.

use mlx_rs::Array;

use crate::{Result, cache::SequenceCache};

/// A model ready to run. Lives on the MLX thread.
pub trait Model {
    /// Appends each segment's tokens to its cache and returns the asked-for logits.
    ///
    /// `tokens` is `[total]` of `u32` or `i32`, segments in order. The answer is `[rows, vocab]`
    /// with the rows of each segment in order. Nothing is evaluated: the caller decides when.
    fn forward(&self, tokens: &Array, segments: &mut [Segment<'_>]) -> Result<Array>;

    /// Empty caches for one sequence, one for each layer.
    fn new_cache(&self, options: &crate::cache::CacheOptions) -> Result<SequenceCache>;

    /// Rows of the logits.
    fn vocab_size(&self) -> u32;
}

/// The new tokens of one sequence.
#[derive(Debug)]
pub struct Segment<'a> {
    /// How many of the tokens, at least 1.
    pub length: usize,
    pub cache: &'a mut SequenceCache,
    pub logits: LogitsRows,
}

/// Which positions of a segment need logits. The vocabulary projection is the largest matrix of a
/// small model, so prefill skips it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogitsRows {
    None,
    Last,
    All,
}
