//! Subtracts from a token's logit for each time the output has it.

use mlx_rs::Array;

use super::{LogitsProcessor, Setup, Step};
use crate::{error::Result, sampling::token_counts::TokenCounts};

pub(super) struct FrequencyPenalty {
    penalty: Array,
    counts: TokenCounts,
}

impl FrequencyPenalty {
    pub(super) fn make(setup: &Setup<'_>) -> Option<Box<dyn LogitsProcessor>> {
        if setup.parameters.numbers.frequency_penalty == 0.0 {
            return None;
        }
        Some(Box::new(Self {
            penalty: Array::from_f32(setup.parameters.numbers.frequency_penalty),
            counts: TokenCounts::new(
                setup.history.tokens,
                setup.history.prompt_length,
                setup.parameters.penalty_window,
                setup.vocab_size,
            ),
        }))
    }
}

impl LogitsProcessor for FrequencyPenalty {
    fn process(&mut self, logits: Array, step: &Step<'_>) -> Result<Array> {
        let counts = self.counts.advance(step)?;
        Ok(logits.subtract(counts.multiply(&self.penalty)?)?)
    }
}
