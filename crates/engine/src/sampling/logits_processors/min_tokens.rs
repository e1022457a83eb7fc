//! Bans the tokens that end a generation until it has its least length.

use mlx_rs::Array;

use super::{LogitsProcessor, Setup, Step};
use crate::error::Result;

pub(super) struct MinTokens {
    min_tokens: usize,
    /// `[1, vocab]`: minus infinity where banned, else zero.
    ban: Array,
}

impl MinTokens {
    pub(super) fn make(setup: &Setup<'_>) -> Option<Box<dyn LogitsProcessor>> {
        let min_tokens = setup.min_tokens as usize;
        if min_tokens <= setup.history.output().len() || setup.end_tokens.is_empty() {
            return None;
        }
        let mut ban = vec![0.0_f32; setup.vocab_size as usize];
        for &token in setup.end_tokens {
            if let Some(slot) = ban.get_mut(token as usize) {
                *slot = f32::NEG_INFINITY;
            }
        }
        let ban = Array::from_slice(&ban, &[1, ban.len() as i32]);
        Some(Box::new(Self { min_tokens, ban }))
    }
}

impl LogitsProcessor for MinTokens {
    fn process(&mut self, logits: Array, step: &Step<'_>) -> Result<Array> {
        if step.index >= self.min_tokens {
            return Ok(logits);
        }
        Ok(logits.add(&self.ban)?)
    }
}
