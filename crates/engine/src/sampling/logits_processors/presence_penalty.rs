//! Subtracts a constant from the logits of tokens that the output has already.

use mlx_rs::{Array, ops::gt};

use super::{LogitsProcessor, Setup, Step};
use crate::{error::Result, sampling::token_counts::TokenCounts};

pub(super) struct PresencePenalty {
    penalty: Array,
    seen: TokenCounts,
}

impl PresencePenalty {
    pub(super) fn make(setup: &Setup<'_>) -> Option<Box<dyn LogitsProcessor>> {
        if setup.parameters.numbers.presence_penalty == 0.0 {
            return None;
        }
        Some(Box::new(Self {
            penalty: Array::from_f32(setup.parameters.numbers.presence_penalty),
            seen: TokenCounts::new(
                setup.history.tokens,
                setup.history.prompt_length,
                setup.parameters.penalty_window,
                setup.vocab_size,
            ),
        }))
    }
}

impl LogitsProcessor for PresencePenalty {
    fn process(&mut self, logits: Array, step: &Step<'_>) -> Result<Array> {
        let is_seen = gt(self.seen.advance(step)?, Array::from_f32(0.0))?;
        Ok(logits.subtract(self.penalty.multiply(is_seen)?)?)
    }
}
