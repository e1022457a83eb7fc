//! Models that read whole texts and give one row for each: embeddings and rerankers.

mod batch;
mod head;
mod modules;
mod pooling;
mod reader;

use mlx_rs::Array;

pub(crate) use self::batch::{Batch, Group, Masks};
pub(crate) use self::head::{Head, Scorer};
pub(crate) use self::modules::SentenceModules;
pub(crate) use self::pooling::{Pool, Rows};
pub(crate) use self::reader::Reader;
use crate::Result;

/// A model that reads texts. Lives on the MLX thread.
pub trait Encoder {
    /// Reads `texts`. On a GPU they are best of about the same length, since all are padded to the
    /// longest; on the CPU nothing is padded, and texts of exactly the same length save operations.
    ///
    /// The answer is `[texts, features]` of `f32`: vectors, pooled and normalized as the model's own
    /// files say, or one score from 0 to 1. Nothing is evaluated: the caller decides when.
    fn forward(&self, texts: &[EncoderText<'_>]) -> Result<Array>;

    /// Whether texts are padded to the longest that is read with them.
    fn pads(&self) -> bool;

    /// Numbers a text becomes; 1 for rerankers.
    fn features(&self) -> u32;

    /// Rows of the token embedding.
    fn vocab_size(&self) -> u32;
}

/// One text, or a query and a document in the model's own arrangement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderText<'a> {
    /// Special tokens included; at least one.
    pub tokens: &'a [u32],
    /// First token of the second segment (`token_type_ids` 1), where there is one.
    pub second_segment: Option<usize>,
}

/// Tokens by which a generator says whether a document answers a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerTokens {
    pub yes: u32,
    pub no: u32,
}

/// Sizes of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EncoderSizes {
    /// Features of a hidden state.
    pub(crate) hidden: i32,
    pub(crate) vocab: i32,
}
