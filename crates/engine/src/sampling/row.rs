//! The sampling state of one sequence.

use std::{fmt, sync::Arc};

use super::{
    logits_processors::{self, LogitsProcessor, Step},
    params::Parameters,
};
use crate::error::Result;
use mlx_rs::Array;

/// The bytes of a token, as they appear in text.
pub(crate) type TokenText = Arc<dyn Fn(u32) -> Vec<u8> + Send + Sync>;

/// Parameters and logits processors of one sequence.
pub(crate) struct RowSampler {
    parameters: Parameters,
    processors: Vec<Box<dyn LogitsProcessor>>,
    needs_history: bool,
    /// What Mirostat has learned, `[1, 1]`; `None` before its first draw. A sampler that is made
    /// anew learns anew.
    surprise_limit: Option<Array>,
}

impl fmt::Debug for RowSampler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RowSampler")
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

/// A row to be sampled.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) sampler: &'a mut RowSampler,
    pub(crate) step: Step<'a>,
    /// Report log probabilities with so many alternatives.
    pub(crate) logprobs: Option<u8>,
}

impl RowSampler {
    /// `history` is the prompt and what has been generated already; `end_tokens` may not
    /// come before `min_tokens`; a constrained sequence has a mask at each step.
    pub(crate) fn new(
        parameters: Parameters,
        history: History<'_>,
        min_tokens: u32,
        end_tokens: &[u32],
        is_constrained: bool,
        vocab_size: u32,
        text: &TokenText,
    ) -> Self {
        let processors = logits_processors::chain(&logits_processors::Setup {
            parameters: &parameters,
            history,
            min_tokens,
            end_tokens,
            is_constrained,
            vocab_size,
            text,
        });
        let needs_history = processors.iter().any(|processor| processor.needs_history());
        Self {
            parameters,
            processors,
            needs_history,
            surprise_limit: None,
        }
    }

    pub(super) fn surprise_limit(&self) -> Option<&Array> {
        self.surprise_limit.as_ref()
    }

    pub(super) fn set_surprise_limit(&mut self, limit: Array) {
        self.surprise_limit = Some(limit);
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The host must know every token before the next one is drawn.
    pub(crate) fn needs_history(&self) -> bool {
        self.needs_history
    }

    /// Logits go to the draw as the model made them.
    pub(crate) fn is_plain(&self) -> bool {
        self.processors.is_empty()
    }

    /// Runs the processors on this row's logits, `[1, vocab]` of `f32`.
    pub(super) fn process(&mut self, logits: Array, step: &Step<'_>) -> Result<Array> {
        self.processors
            .iter_mut()
            .try_fold(logits, |logits, processor| processor.process(logits, step))
    }
}

/// The tokens a sequence consists of so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History<'a> {
    /// Prompt and output.
    pub(crate) tokens: &'a [u32],
    pub(crate) prompt_length: usize,
}

impl<'a> History<'a> {
    pub(crate) fn output(&self) -> &'a [u32] {
        &self.tokens[self.prompt_length.min(self.tokens.len())..]
    }
}
