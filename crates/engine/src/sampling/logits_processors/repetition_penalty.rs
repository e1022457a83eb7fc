//! Divides positive and multiplies negative logits of tokens seen in prompt or output (Keskar et
//! al., "CTRL").

use mlx_rs::{
    Array,
    ops::{gt, select},
};

use super::{LogitsProcessor, Setup, Step};
use crate::{error::Result, sampling::token_counts::TokenCounts};

pub(super) struct RepetitionPenalty {
    penalty: Array,
    seen: TokenCounts,
}

impl RepetitionPenalty {
    pub(super) fn make(setup: &Setup<'_>) -> Option<Box<dyn LogitsProcessor>> {
        let penalty = setup.parameters.numbers.repetition_penalty;
        #[expect(clippy::float_cmp, reason = "exactly the neutral value")]
        if penalty == 1.0 {
            return None;
        }
        Some(Box::new(Self {
            penalty: Array::from_f32(penalty),
            seen: TokenCounts::new(
                setup.history.tokens,
                0,
                setup.parameters.penalty_window,
                setup.vocab_size,
            ),
        }))
    }
}

impl LogitsProcessor for RepetitionPenalty {
    fn process(&mut self, logits: Array, step: &Step<'_>) -> Result<Array> {
        let zero = Array::from_f32(0.0);
        let is_seen = gt(self.seen.advance(step)?, &zero)?;
        let penalized = select(
            gt(&logits, &zero)?,
            logits.divide(&self.penalty)?,
            logits.multiply(&self.penalty)?,
        )?;
        Ok(select(is_seen, penalized, logits)?)
    }
}
