//! Logits to logits, one kind a file, before a token is drawn.

mod dry;
mod frequency_penalty;
mod grammar;
mod logit_bias;
mod min_tokens;
mod presence_penalty;
mod repetition_penalty;

use mlx_rs::Array;

use super::{
    params::Parameters,
    row::{History, TokenText},
};
use crate::error::Result;

/// Changes the logits of one sequence.
pub(crate) trait LogitsProcessor {
    /// `logits` is `[1, vocab]` of `f32`, and so is the answer. Called once for each token.
    fn process(&mut self, logits: Array, step: &Step<'_>) -> Result<Array>;

    /// [`Step::history`] must be complete; costs the overlap of host and device.
    fn needs_history(&self) -> bool {
        false
    }
}

/// Where a sequence is when its next token is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    /// Tokens generated before this one.
    pub(crate) index: usize,
    /// Prompt and output; lacks the last token while the device still computes it, unless a
    /// processor needs the history.
    pub(crate) history: &'a [u32],
    /// The token generated just before, `[1]` of `u32`. `None` when there is none or when the
    /// sampler was made from a history that has it already.
    pub(crate) last: Option<&'a Array>,
    /// One flag for each column of the logits: whether the sequence's grammar allows it. `None`: it
    /// has no grammar.
    pub(crate) allowed: Option<&'a [bool]>,
}

/// What processors are made from.
pub(super) struct Setup<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) history: History<'a>,
    pub(super) min_tokens: u32,
    pub(super) end_tokens: &'a [u32],
    /// Each step has a mask.
    pub(super) is_constrained: bool,
    pub(super) vocab_size: u32,
    pub(super) text: &'a TokenText,
}

/// The processors a sequence needs, in the order they run.
pub(super) fn chain(setup: &Setup<'_>) -> Vec<Box<dyn LogitsProcessor>> {
    let chain: [Option<Box<dyn LogitsProcessor>>; 7] = [
        logit_bias::LogitBias::make(setup),
        repetition_penalty::RepetitionPenalty::make(setup),
        presence_penalty::PresencePenalty::make(setup),
        frequency_penalty::FrequencyPenalty::make(setup),
        dry::DryPenalty::make(setup),
        min_tokens::MinTokens::make(setup),
        grammar::GrammarMask::make(setup),
    ];
    chain.into_iter().flatten().collect()
}
