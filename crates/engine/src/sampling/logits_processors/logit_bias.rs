//! Adds a constant to the logits of chosen tokens.

use mlx_rs::Array;

use super::{LogitsProcessor, Setup, Step};
use crate::error::Result;

pub(super) struct LogitBias {
    /// `[1, vocab]`; zero where there is none.
    bias: Array,
}

impl LogitBias {
    pub(super) fn make(setup: &Setup<'_>) -> Option<Box<dyn LogitsProcessor>> {
        if setup.parameters.logit_bias.is_empty() {
            return None;
        }
        let mut bias = vec![0.0_f32; setup.vocab_size as usize];
        for (&token, &amount) in &setup.parameters.logit_bias {
            if let Some(slot) = bias.get_mut(token as usize) {
                *slot = amount;
            }
        }
        let bias = Array::from_slice(&bias, &[1, bias.len() as i32]);
        Some(Box::new(Self { bias }))
    }
}

impl LogitsProcessor for LogitBias {
    fn process(&mut self, logits: Array, _: &Step<'_>) -> Result<Array> {
        Ok(logits.add(&self.bias)?)
    }
}
