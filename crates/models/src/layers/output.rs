//! Computes logits from hidden states, for the rows that need them.

use mlx_rs::{Array, ops};

use super::{Embedding, Linear, Norm, RmsNorm, Step};
use crate::{Result, weights::Weights};

/// Final norm and projection to the vocabulary.
#[derive(Debug)]
pub(crate) struct Output<N = RmsNorm> {
    norm: N,
    head: Linear,
}

impl<N: Norm> Output<N> {
    /// Takes the head of this name unless it is `embedding`'s matrix: by `tied`, and where
    /// config.json does not say, by whether the checkpoint has a head of its own.
    pub(crate) fn load(
        weights: &mut Weights,
        norm: N,
        embedding: &Embedding,
        (hidden, vocab): (i32, i32),
        (name, tied): (&str, Option<bool>),
    ) -> Result<Self> {
        let tied = tied.unwrap_or_else(|| !weights.at(name).contains("weight"));
        let head = if tied {
            // Exporters may write the shared matrix twice.
            weights.ignore(|key| {
                key.strip_prefix(name)
                    .is_some_and(|key| key.starts_with('.'))
            });
            embedding.tied_head()?
        } else {
            Linear::load(&mut weights.at(name), hidden, vocab, false)?
        };
        Ok(Self { norm, head })
    }

    /// `[rows, hidden]` to the `[asked rows, vocab]` that the segments want.
    pub(crate) fn forward(&self, hidden: Array, step: &Step<'_, '_>) -> Result<Array> {
        match step.logits_rows(hidden)? {
            Some(rows) => self.head.forward(&self.norm.forward(&rows)?),
            None => Ok(ops::zeros::<f32>(&[0, self.head.outputs()])?),
        }
    }

    pub(crate) fn vocab_size(&self) -> u32 {
        self.head.outputs().unsigned_abs()
    }
}
