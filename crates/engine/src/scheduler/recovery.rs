//! Who pays when a step fails: out of memory costs one request, the others start over from their
//! tokens; any other failure costs all that shared the step.

use macmlx_inference::InferenceError;
use macmlx_models::cache::CacheOptions;

use super::{
    policy,
    run_loop::Scheduler,
    sequence::{Choice, Prefill},
};
use crate::error::StepError;

impl Scheduler {
    /// After a failed chunk: `indices` are the prefills that shared it.
    pub(super) fn recover_prefill(&mut self, indices: &[usize], error: StepError) {
        let mut shared = Vec::new();
        let mut index = 0;
        self.prefilling.retain_mut(|prefill| {
            let was_in = indices.contains(&index);
            index += 1;
            if was_in {
                shared.append(&mut prefill.choices);
            }
            !was_in
        });
        self.settle(shared, error.into());
    }

    /// After a failed decode step.
    pub(super) fn recover_decode(&mut self, error: StepError) {
        // A step queued on a failed one fails too.
        self.in_flight = None;
        let shared = self
            .decoding
            .drain(..)
            .map(|sequence| sequence.choice)
            .collect();
        self.settle(shared, error.into());
    }

    /// Decides over choices whose caches are lost.
    fn settle(&mut self, choices: Vec<Choice>, error: InferenceError) {
        tracing::error!(%error, sequences = choices.len(), "a step failed");
        self.has_garbage = true;
        if let Err(error) = mlx_rs::memory::clear_cache() {
            tracing::warn!(%error, "MLX kept its buffers");
        }
        if !matches!(error, InferenceError::OutOfMemory { .. }) {
            for choice in &choices {
                choice.request.borrow_mut().fail(error.clone());
            }
            return;
        }
        let lengths: Vec<usize> = choices
            .iter()
            .map(|choice| choice.history().len())
            .collect();
        if let Some(victim) = policy::victim(&lengths) {
            choices[victim].request.borrow_mut().fail(error);
        }
        for choice in choices {
            if !choice.request.borrow().is_over() {
                self.start_over(choice);
            }
        }
    }

    /// Computes a choice's cache anew from its tokens.
    fn start_over(&mut self, mut choice: Choice) {
        let options = CacheOptions {
            quantization: self.options.kv_quantization,
        };
        let Some(model) = self.pool.model() else {
            return;
        };
        match model.new_cache(&options) {
            Ok(cache) => {
                choice.reset_sampler(model.vocab_size());
                self.prefilling.push(Prefill {
                    request: choice.request.clone(),
                    tokens: choice.history().to_vec(),
                    position: 0,
                    cache,
                    choices: vec![choice],
                    prompt_logprobs: None,
                });
            }
            Err(error) => {
                choice
                    .request
                    .borrow_mut()
                    .fail(StepError::from(error).into());
            }
        }
    }
}
