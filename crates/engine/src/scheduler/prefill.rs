//! Computes one chunk of prompts and turns finished prefills into sequences.

use macmlx_inference::{GenerationEvent, TokenLogprob};
use macmlx_models::{LogitsRows, Segment};
use mlx_rs::{Array, ops::indexing::TryIndexOp};

use super::{
    policy::Share,
    run_loop::Scheduler,
    sequence::{Prefill, Sequence},
};
use crate::{
    error::{Result, StepError},
    output::token_logprob,
    sampling::{LogprobArrays, LogprobRow, logprobs, sample},
};

/// Logits of a chunk whose every position is wanted may take this many numbers.
const LOGITS_BUDGET: usize = 1 << 24;

/// What a chunk computes, still on the device.
#[derive(Default)]
struct Computed {
    /// First tokens of the choices of finished prefills, in order.
    tokens: Option<Array>,
    token_logprobs: Option<LogprobArrays>,
    /// Log probabilities of prompts, each with the index of its prefill.
    prompt_logprobs: Vec<(usize, LogprobArrays)>,
}

/// A share that is computed now.
struct Part {
    index: usize,
    tokens: usize,
    /// Rows of logits it gets, and the first of them.
    rows: usize,
    first_row: usize,
    is_last: bool,
}

impl Scheduler {
    /// Tokens of one chunk; fewer while a prompt's own log probabilities are wanted, since these
    /// need logits everywhere.
    pub(super) fn chunk_size(&self) -> usize {
        let wants_logits = self
            .prefilling
            .iter()
            .any(|prefill| prefill.prompt_logprobs.is_some());
        match self.pool.model() {
            Some(model) if wants_logits => {
                let rows = LOGITS_BUDGET / (model.vocab_size() as usize).max(1);
                rows.clamp(1, self.options.prefill_chunk)
            }
            Some(_) | None => self.options.prefill_chunk,
        }
    }

    /// Computes one chunk.
    pub(super) fn prefill(&mut self, shares: &[Share]) {
        self.turns.note_prefill();
        self.chunks += 1;
        if let Err(error) = self.compute_chunk(shares) {
            let indices: Vec<usize> = shares.iter().map(|share| share.index).collect();
            self.recover_prefill(&indices, error);
        }
    }

    fn compute_chunk(&mut self, shares: &[Share]) -> Result<()> {
        let parts = self.parts(shares);
        let computed = self.forward_chunk(&parts)?;
        let tokens = match &computed.tokens {
            Some(tokens) => tokens.to_vec_exact::<u32>()?,
            None => Vec::new(),
        };
        let token_logprobs = match &computed.token_logprobs {
            Some(arrays) => Some(arrays.read()?),
            None => None,
        };
        for (index, arrays) in &computed.prompt_logprobs {
            let rows = arrays.read()?;
            if let Some(collected) = &mut self.prefilling[*index].prompt_logprobs {
                collected.rows.extend(rows);
            }
        }
        for part in &parts {
            let prefill = &mut self.prefilling[part.index];
            prefill.position += part.tokens;
            prefill.request.borrow().send(GenerationEvent::Prefill {
                processed: prefill.position as u32,
                total: prefill.tokens.len() as u32,
            });
        }
        self.finish_prefills(&tokens, token_logprobs.as_deref())
    }

    /// The shares in order of the prefills, with the rows of logits they get.
    fn parts(&self, shares: &[Share]) -> Vec<Part> {
        let mut parts: Vec<Part> = shares
            .iter()
            .map(|share| {
                let prefill = &self.prefilling[share.index];
                let is_last = share.tokens == prefill.remaining();
                let rows = match (&prefill.prompt_logprobs, is_last) {
                    (Some(_), _) => share.tokens,
                    (None, true) => 1,
                    (None, false) => 0,
                };
                Part {
                    index: share.index,
                    tokens: share.tokens,
                    rows,
                    first_row: 0,
                    is_last,
                }
            })
            .collect();
        parts.sort_by_key(|part| part.index);
        let mut row = 0;
        for part in &mut parts {
            part.first_row = row;
            row += part.rows;
        }
        parts
    }

    fn forward_chunk(&mut self, parts: &[Part]) -> Result<Computed> {
        let model = self
            .pool
            .model()
            .ok_or(StepError::Broken("prefill without a model"))?;
        let mut tokens: Vec<u32> = Vec::with_capacity(parts.iter().map(|part| part.tokens).sum());
        for part in parts {
            let prefill = &self.prefilling[part.index];
            tokens.extend(&prefill.tokens[prefill.position..prefill.position + part.tokens]);
        }
        let tokens = Array::from_slice(&tokens, &[tokens.len() as i32]);
        let mut pending = parts.iter().peekable();
        let mut segments = Vec::with_capacity(parts.len());
        for (index, prefill) in self.prefilling.iter_mut().enumerate() {
            if let Some(part) = pending.next_if(|part| part.index == index) {
                segments.push(Segment {
                    length: part.tokens,
                    cache: &mut prefill.cache,
                    logits: match part.rows {
                        0 => LogitsRows::None,
                        _ if prefill.prompt_logprobs.is_some() => LogitsRows::All,
                        _ => LogitsRows::Last,
                    },
                });
            }
        }
        let logits = model.forward(&tokens, &mut segments)?;
        drop(segments);
        let mut computed = Computed::default();
        self.prompt_logprobs(parts, &logits, &mut computed)?;
        self.first_tokens(parts, &logits, &mut computed)?;
        let caches = parts
            .iter()
            .flat_map(|part| self.prefilling[part.index].cache.arrays());
        let results = computed
            .tokens
            .iter()
            .chain(
                computed
                    .token_logprobs
                    .iter()
                    .flat_map(LogprobArrays::arrays),
            )
            .chain(
                computed
                    .prompt_logprobs
                    .iter()
                    .flat_map(|(_, arrays)| arrays.arrays()),
            );
        mlx_rs::transforms::eval(caches.chain(results))?;
        // The next chunk's arrays have other sizes; buffers of this one would only pile up.
        mlx_rs::memory::clear_cache()?;
        Ok(computed)
    }

    /// Scores the tokens that follow each position of the prompts that want it.
    fn prompt_logprobs(
        &self,
        parts: &[Part],
        logits: &Array,
        computed: &mut Computed,
    ) -> Result<()> {
        for part in parts {
            let prefill = &self.prefilling[part.index];
            let Some(wanted) = &prefill.prompt_logprobs else {
                continue;
            };
            let from = prefill.position + 1;
            let to = (prefill.position + part.tokens + 1).min(prefill.tokens.len());
            if from >= to {
                continue;
            }
            let next = &prefill.tokens[from..to];
            let first = part.first_row as i32;
            let rows = logits
                .try_index((first..first + next.len() as i32, ..))?
                .as_dtype(mlx_rs::Dtype::Float32)?;
            let next = Array::from_slice(next, &[next.len() as i32]);
            computed
                .prompt_logprobs
                .push((part.index, logprobs(&rows, &next, wanted.top)?));
        }
        Ok(())
    }

    /// Draws the first token of each choice of the prefills that end with this chunk.
    fn first_tokens(
        &mut self,
        parts: &[Part],
        logits: &Array,
        computed: &mut Computed,
    ) -> Result<()> {
        let draws_from_history = |prefill: &Prefill| {
            let mut choices = prefill.choices.iter();
            choices.any(super::sequence::Choice::draws_from_history)
        };
        if self.prefilling.iter().any(draws_from_history) {
            // Masks may still be computed; the device need not wait for them.
            mlx_rs::transforms::async_eval([logits])?;
        }
        let mut wanted: Vec<i32> = Vec::new();
        let mut rows = Vec::new();
        let mut ending = parts.iter().filter(|part| part.is_last).peekable();
        for (index, prefill) in self.prefilling.iter_mut().enumerate() {
            if let Some(part) = ending.next_if(|part| part.index == index) {
                for choice in &mut prefill.choices {
                    wanted.push((part.first_row + part.rows - 1) as i32);
                    rows.push(choice.row(0, None));
                }
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let is_each_row_once = logits.dim(0) as usize == wanted.len()
            && wanted
                .iter()
                .enumerate()
                .all(|(place, &row)| place as i32 == row);
        let sampled = if is_each_row_once {
            sample(logits, &mut rows)?
        } else {
            let wanted = Array::from_slice(&wanted, &[wanted.len() as i32]);
            sample(&logits.take_axis(&wanted, 0)?, &mut rows)?
        };
        computed.tokens = Some(sampled.tokens);
        computed.token_logprobs = sampled.logprobs;
        Ok(())
    }

    /// Takes prefills that have ended out of the list; their choices become sequences unless the
    /// first token was also the last.
    fn finish_prefills(&mut self, tokens: &[u32], logprobs: Option<&[LogprobRow]>) -> Result<()> {
        let mut tokens = tokens.iter();
        let mut logprobs = logprobs.unwrap_or_default().iter();
        let (ended, going_on): (Vec<Prefill>, Vec<Prefill>) = self
            .prefilling
            .drain(..)
            .partition(|prefill| prefill.remaining() == 0);
        self.prefilling = going_on;
        for prefill in ended {
            report_prompt(&prefill);
            let last = prefill.choices.len() - 1;
            let mut cache = Some(prefill.cache);
            for (index, mut choice) in prefill.choices.into_iter().enumerate() {
                let token = *tokens
                    .next()
                    .ok_or(StepError::Broken("a choice without a token"))?;
                let wants_logprobs = choice.request.borrow().logprobs.is_some();
                let row = if wants_logprobs {
                    logprobs.next()
                } else {
                    None
                };
                if choice.request.borrow().end.max_tokens == 0 {
                    choice.finish(macmlx_inference::FinishReason::Length);
                    continue;
                }
                let own_cache = if index == last {
                    cache.take()
                } else {
                    cache
                        .as_ref()
                        .map(macmlx_models::cache::SequenceCache::duplicate)
                };
                let Some(cache) = own_cache else { continue };
                if choice.accept(token, row) {
                    self.has_garbage = true;
                } else {
                    self.decoding.push(Sequence {
                        id: self.next_id,
                        choice,
                        cache,
                    });
                    self.next_id += 1;
                }
            }
        }
        Ok(())
    }
}

/// Tells the prompt's own log probabilities, if they were asked for.
fn report_prompt(prefill: &Prefill) {
    let Some(collected) = &prefill.prompt_logprobs else {
        return;
    };
    let request = prefill.request.borrow();
    let tokenizer = request.profile.chat.tokenizer();
    let rows = std::iter::once(None).chain(collected.rows.iter().map(Some));
    let tokens: Vec<TokenLogprob> = prefill
        .tokens
        .iter()
        .zip(rows)
        .map(|(&token, row)| token_logprob(tokenizer, token, row, collected.top))
        .collect();
    request.send(GenerationEvent::PromptLogprobs { tokens });
}
