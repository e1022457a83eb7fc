//! One choice of a request, while it prefills and while it decodes.

use std::collections::VecDeque;

use macmlx_chat::ChoiceOutput;
use macmlx_inference::FinishReason;
use macmlx_models::cache::SequenceCache;
use mlx_rs::Array;

use super::request::SharedRequest;
use crate::{
    masks::{Constrained, Progress},
    output::token_logprob,
    sampling::logits_processors::Step,
    sampling::{History, LogprobRow, Parameters, Row, RowSampler},
};

/// A choice without its cache: all that must survive when the cache has to be computed anew.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) request: SharedRequest,
    sampler: RowSampler,
    output: ChoiceOutput,
    /// What the output is held to.
    constrained: Option<Constrained>,
    /// Prompt and output.
    history: Vec<u32>,
    prompt_length: usize,
    /// Tokens put in place of the next drawn ones.
    forced: VecDeque<u32>,
}

impl Choice {
    pub(super) fn new(
        request: SharedRequest,
        output: ChoiceOutput,
        constrained: Option<Constrained>,
        prompt: &[u32],
        parameters: Parameters,
        vocab_size: u32,
    ) -> Self {
        let history = History {
            tokens: prompt,
            prompt_length: prompt.len(),
        };
        let is_constrained = constrained.is_some();
        let sampler = new_sampler(&request, history, parameters, is_constrained, vocab_size);
        let mut choice = Self {
            request,
            sampler,
            output,
            constrained,
            history: prompt.to_vec(),
            prompt_length: prompt.len(),
            forced: VecDeque::new(),
        };
        choice.cut_reasoning();
        choice
    }

    /// Prompt and output so far.
    pub(super) fn history(&self) -> &[u32] {
        &self.history
    }

    /// Tokens generated and known to the host.
    pub(super) fn count_generated(&self) -> usize {
        self.history.len() - self.prompt_length
    }

    /// The token now computed, if any, is the last one the request may have.
    pub(super) fn ends_with_next(&self) -> bool {
        self.count_generated() + 1 >= self.request.borrow().end.max_tokens as usize
    }

    /// The host must see the token now computed before anything can be computed from it: it may be
    /// put aside for another, or be the last.
    pub(super) fn waits_for_host(&self) -> bool {
        !self.forced.is_empty() || self.ends_with_next()
    }

    /// The host must see the token now computed before the one after it can be drawn, though its
    /// logits can be computed.
    pub(super) fn draws_from_history(&self) -> bool {
        self.sampler.needs_history()
    }

    /// The sampler keeps account of drawn tokens.
    pub(super) fn observes_tokens(&self) -> bool {
        !self.sampler.is_plain()
    }

    /// This choice's row of the next draw; waits for its mask, without which the request fails.
    /// `in_flight` tokens are not yet in the history; `last`
    /// is the one just before, if the sampler has not seen it.
    pub(super) fn row<'a>(&'a mut self, in_flight: usize, last: Option<&'a Array>) -> Row<'a> {
        let index = self.count_generated() + in_flight;
        let logprobs = self.request.borrow().logprobs.map(|logprobs| logprobs.top);
        let allowed = match self.constrained.as_mut().map(Constrained::allowed) {
            Some(Ok(allowed)) => Some(allowed),
            Some(Err(error)) => {
                self.request.borrow_mut().fail(error);
                None
            }
            None => None,
        };
        Row {
            sampler: &mut self.sampler,
            step: Step {
                index,
                history: &self.history,
                last,
                allowed,
            },
            logprobs,
        }
    }

    /// Takes a drawn token; whether the choice has ended by it.
    pub(super) fn accept(&mut self, drawn: u32, logprobs: Option<&LogprobRow>) -> bool {
        let forced = self.forced.pop_front();
        let token = forced.unwrap_or(drawn);
        let mut request = self.request.borrow_mut();
        request.count_token();
        if forced.is_none() && request.end.tokens.binary_search(&token).is_ok() {
            drop(request);
            self.finish(FinishReason::Stop);
            return true;
        }
        self.history.push(token);
        let logprob = request.logprobs.map(|asked| {
            let row = logprobs.filter(|_| forced.is_none());
            token_logprob(request.profile.chat.tokenizer(), token, row, asked.top)
        });
        self.output
            .push(token, logprob, |event| request.send(event));
        let advanced = match &mut self.constrained {
            Some(constrained) => constrained.advance(token),
            None => Ok(Progress::Open),
        };
        let is_complete = match advanced {
            Ok(progress) => progress == Progress::Complete,
            Err(error) => {
                request.fail(error);
                return true;
            }
        };
        let is_full = self.count_generated() >= request.end.max_tokens as usize;
        drop(request);
        if self.output.is_stopped() || is_complete {
            self.finish(FinishReason::Stop);
        } else if is_full {
            self.finish(FinishReason::Length);
        } else {
            self.cut_reasoning();
            return false;
        }
        true
    }

    /// Ends the choice.
    pub(super) fn finish(&mut self, reason: FinishReason) {
        let mut request = self.request.borrow_mut();
        self.output.finish(reason, |event| request.send(event));
        request.close_choice(self.output.reasoning_tokens());
    }

    /// Makes the sampler anew from the history, after a step that may have spoilt its arrays.
    pub(super) fn reset_sampler(&mut self, vocab_size: u32) {
        let history = History {
            tokens: &self.history,
            prompt_length: self.prompt_length,
        };
        let parameters = self.sampler.parameters().clone();
        let is_constrained = self.constrained.is_some();
        self.sampler = new_sampler(
            &self.request,
            history,
            parameters,
            is_constrained,
            vocab_size,
        );
    }

    /// Closes the model's reasoning block once it has used up its budget.
    fn cut_reasoning(&mut self) {
        let request = self.request.borrow();
        let close = request
            .reasoning_budget
            .and_then(|budget| self.output.close_reasoning(budget));
        let Some(close) = close else {
            return;
        };
        match request.profile.chat.tokenizer().encode(close, false) {
            Ok(tokens) => self.forced.extend(tokens),
            Err(error) => tracing::warn!(%error, "cannot close the reasoning block"),
        }
    }
}

fn new_sampler(
    request: &SharedRequest,
    history: History<'_>,
    parameters: Parameters,
    is_constrained: bool,
    vocab_size: u32,
) -> RowSampler {
    let request = request.borrow();
    RowSampler::new(
        parameters,
        history,
        request.end.min_tokens,
        &request.end.tokens,
        is_constrained,
        vocab_size,
        &request.profile.token_text(),
    )
}

/// A choice that decodes.
#[derive(Debug)]
pub(super) struct Sequence {
    /// Names the sequence in a queued step; never used twice.
    pub(super) id: u64,
    pub(super) choice: Choice,
    /// Holds all tokens but the last.
    pub(super) cache: SequenceCache,
}

/// Tokens on their way into a cache, and the choices that will continue from there.
#[derive(Debug)]
pub(super) struct Prefill {
    pub(super) request: SharedRequest,
    pub(super) tokens: Vec<u32>,
    /// Tokens in the cache.
    pub(super) position: usize,
    pub(super) cache: SequenceCache,
    /// The choices, at least one; if there are more, they share the prompt.
    pub(super) choices: Vec<Choice>,
    /// Collects the prompt's own log probabilities: how many alternatives, and those so far.
    pub(super) prompt_logprobs: Option<PromptLogprobs>,
}

/// Log probabilities of a prompt, but for its first token.
#[derive(Debug)]
pub(super) struct PromptLogprobs {
    pub(super) top: u8,
    pub(super) rows: Vec<LogprobRow>,
}

impl Prefill {
    /// Tokens still to be computed.
    pub(super) fn remaining(&self) -> usize {
        self.tokens.len() - self.position
    }
}
