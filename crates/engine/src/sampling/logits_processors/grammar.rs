//! Bans the tokens that a grammar does not allow next.

use mlx_rs::{Array, ops::select};

use super::{LogitsProcessor, Setup, Step};
use crate::error::Result;

pub(super) struct GrammarMask;

impl GrammarMask {
    pub(super) fn make(setup: &Setup<'_>) -> Option<Box<dyn LogitsProcessor>> {
        setup.is_constrained.then(|| Box::new(Self) as _)
    }
}

impl LogitsProcessor for GrammarMask {
    fn process(&mut self, logits: Array, step: &Step<'_>) -> Result<Array> {
        // A request whose mask cannot be had has failed.
        let Some(allowed) = step.allowed else {
            return Ok(logits);
        };
        let allowed = Array::from_slice(allowed, &[1, allowed.len() as i32]);
        Ok(select(
            &allowed,
            &logits,
            Array::from_f32(f32::NEG_INFINITY),
        )?)
    }

    fn needs_history(&self) -> bool {
        true
    }
}
