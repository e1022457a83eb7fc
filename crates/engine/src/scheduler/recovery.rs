//! Handles failed steps: out of memory ends one request and the others start over from their
//! tokens; any other failure ends all that shared the step.

use macmlx_inference::InferenceError;
use macmlx_models::cache::CacheOptions;

use super::{policy, run_loop::Scheduler, sequence::Prefill};
use crate::error::StepError;

impl Scheduler {
    /// Handles a failed chunk; `indices` are the prefills that shared it.
    pub(super) fn recover_prefill(&mut self, indices: &[usize], error: StepError) {
        let (mut shared, mut others) = (Vec::new(), Vec::new());
        for (index, prefill) in self.prefilling.drain(..).enumerate() {
            if indices.contains(&index) {
                shared.push(prefill);
            } else {
                others.push(prefill);
            }
        }
        self.prefilling = others;
        self.settle(shared, error.into());
    }

    /// Handles a failed decode step.
    pub(super) fn recover_decode(&mut self, error: StepError) {
        // A step queued on a failed one fails too.
        self.in_flight = None;
        let shared = self
            .decoding
            .drain(..)
            .map(|sequence| Prefill {
                request: sequence.choice.request.clone(),
                tokens: sequence.choice.history().to_vec(),
                position: 0,
                cache: sequence.cache,
                choices: vec![sequence.choice],
                prompt_logprobs: None,
            })
            .collect();
        self.settle(shared, error.into());
    }

    /// Decides over those whose caches are lost.
    fn settle(&mut self, shared: Vec<Prefill>, error: InferenceError) {
        tracing::error!(%error, sequences = shared.len(), "a step failed");
        if matches!(error, InferenceError::OutOfMemory { .. }) {
            let lengths: Vec<usize> = shared.iter().map(|prefill| prefill.tokens.len()).collect();
            if let Some(victim) = policy::victim(&lengths) {
                shared[victim].request.borrow_mut().fail(error);
            }
        } else {
            for prefill in &shared {
                prefill.request.borrow_mut().fail(error.clone());
            }
        }
        for prefill in shared {
            if !prefill.request.borrow().is_over() {
                self.start_over(prefill);
            }
        }
        self.has_garbage = true;
        if let Err(error) = mlx_rs::memory::clear_cache() {
            tracing::warn!(%error, "MLX kept its buffers");
        }
    }

    /// Computes the cache anew from the tokens.
    fn start_over(&mut self, mut prefill: Prefill) {
        let options = CacheOptions {
            quantization: self.options.kv_quantization,
        };
        let Some(model) = self.pool.model() else {
            return;
        };
        match model.new_cache(&options) {
            Ok(cache) => prefill.cache = cache,
            Err(error) => {
                return prefill
                    .request
                    .borrow_mut()
                    .fail(StepError::from(error).into());
            }
        }
        prefill.position = 0;
        if let Some(collected) = &mut prefill.prompt_logprobs {
            collected.rows.clear();
        }
        for choice in &mut prefill.choices {
            choice.reset_sampler(model.vocab_size());
        }
        self.prefilling.push(prefill);
    }
}
