//! The start of a request: takes a job apart into what is prefilled and what is told of it.

use std::{cell::RefCell, rc::Rc};

use macmlx_chat::ChoiceOutput;
use macmlx_inference::{FinishReason, Timings};
use macmlx_models::cache::CacheOptions;

use super::{
    request::Request,
    run_loop::Scheduler,
    sequence::{Choice, Prefill, PromptLogprobs},
};
use crate::{
    error::StepError,
    job::{Draft, Job},
    masks::Constrained,
};

impl Scheduler {
    /// Gives an admitted job its cache and its choices, and lets it be prefilled.
    pub(super) fn start(&mut self, job: Job) {
        let Job {
            draft,
            events,
            submitted,
            load,
            waiting,
            active,
            ..
        } = job;
        drop(waiting);
        let Draft {
            profile,
            prompt,
            parameters,
            outputs,
            constraint,
            end,
            logprobs,
            reasoning_budget,
        } = draft;
        let timings = Timings {
            load,
            queue: submitted.elapsed().saturating_sub(load),
            ..Timings::default()
        };
        let max_tokens = end.max_tokens;
        let request = Rc::new(RefCell::new(Request::new(
            profile,
            end,
            logprobs,
            reasoning_budget,
            events,
            timings,
            outputs.len(),
            prompt.len() as u32,
            active,
        )));
        let new_cache = self
            .pool
            .model()
            .ok_or(StepError::Broken("admitted without a model"))
            .and_then(|model| {
                let options = CacheOptions {
                    quantization: self.options.kv_quantization,
                };
                Ok((model.new_cache(&options)?, model.vocab_size()))
            });
        let (cache, vocab_size) = match new_cache {
            Ok(made) => made,
            Err(error) => return request.borrow_mut().fail(error.into()),
        };
        let mut choices: Vec<Choice> = outputs
            .into_iter()
            .zip(parameters)
            .enumerate()
            .map(|(index, (output, parameters))| {
                let output = ChoiceOutput::new(index as u32, output);
                let constrained = constraint.clone().map(|constraint| {
                    Constrained::new(constraint, self.mask_threads.clone(), vocab_size)
                });
                let request = request.clone();
                Choice::new(
                    request,
                    output,
                    constrained,
                    &prompt,
                    parameters,
                    vocab_size,
                )
            })
            .collect();
        let prompt_logprobs =
            logprobs
                .filter(|logprobs| logprobs.prompt)
                .map(|logprobs| PromptLogprobs {
                    top: logprobs.top,
                    rows: Vec::new(),
                });
        if max_tokens == 0 && prompt_logprobs.is_none() {
            for choice in &mut choices {
                choice.finish(FinishReason::Length);
            }
            return;
        }
        self.prefilling.push(Prefill {
            request,
            tokens: prompt,
            position: 0,
            cache,
            choices,
            prompt_logprobs,
        });
    }
}
