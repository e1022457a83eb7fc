//! Computes the next token of every sequence, one step ahead of what the host has seen.
//!
//! Invariants:
//! - A step in flight was queued for the sequences it names; others may have joined and some may
//!   have left since.
//! - A step is queued on top of another only when both are for exactly the same sequences and none
//!   of them may have another token put in its place. Else the host reads first.
//! - Where the host must know a token to draw the next one, its logits are computed meanwhile.

use macmlx_models::{LogitsRows, Segment};
use mlx_rs::{Array, ops::indexing::TryIndexOp};

use super::run_loop::Scheduler;
use crate::{
    error::{Result, StepError},
    sampling::{LogprobArrays, Sampled, sample},
};

/// A step the device computes.
#[derive(Debug)]
pub(super) struct InFlight {
    /// Sequences in order of their rows.
    ids: Vec<u64>,
    /// `[rows]` of `u32`.
    tokens: Array,
    logprobs: Option<LogprobArrays>,
}

/// The rows of a step before tokens are drawn.
struct Rows {
    /// What the step was computed from, `[rows]`.
    tokens: Array,
    /// `[rows left, vocab]`
    logits: Array,
    /// The row of `tokens` that each row of `logits` was computed from.
    of_tokens: Vec<i32>,
}

impl Rows {
    fn all(tokens: &Array, logits: Array, rows: usize) -> Self {
        Self {
            tokens: tokens.clone(),
            logits,
            of_tokens: (0..rows as i32).collect(),
        }
    }

    /// Drops the rows of sequences that have ended.
    fn keep(&mut self, is_left: impl Fn(usize) -> bool) -> Result<()> {
        let before = self.of_tokens.len();
        self.of_tokens.retain(|&row| is_left(row as usize));
        if self.of_tokens.len() < before {
            let left = Array::from_slice(&self.of_tokens, &[self.of_tokens.len() as i32]);
            self.logits = self.logits.take_axis(&left, 0)?;
        }
        Ok(())
    }
}

/// Steps after which MLX gives back buffers it kept for reuse: attention over a growing cache asks
/// for new sizes all the time.
const STEPS_PER_CLEARING: u64 = 256;

impl Scheduler {
    /// Queues the next step and takes in the one before.
    pub(super) fn decode(&mut self) {
        self.turns.note_decode();
        self.steps += 1;
        if let Err(error) = self.step() {
            self.recover_decode(error);
        }
    }

    fn step(&mut self) -> Result<()> {
        if self.in_flight.is_some() && !self.can_queue_ahead() {
            self.absorb()?;
            if self.decoding.is_empty() {
                return Ok(());
            }
        }
        let mut before = self.in_flight.take();
        let tokens = match &before {
            Some(before) => before.tokens.clone(),
            None => self.last_tokens(),
        };
        let mut rows = Rows::all(&tokens, self.forward(&tokens)?, self.decoding.len());
        if self.draws_from_history() {
            mlx_rs::transforms::async_eval([&rows.logits])?;
            if before.is_some() {
                let ids: Vec<u64> = self.decoding.iter().map(|sequence| sequence.id).collect();
                self.in_flight = before.take();
                self.absorb()?;
                if self.decoding.is_empty() {
                    return Ok(());
                }
                rows.keep(|row| self.decoding.iter().any(|left| left.id == ids[row]))?;
            }
        }
        let sampled = self.draw(&rows, usize::from(before.is_some()))?;
        mlx_rs::transforms::async_eval(
            std::iter::once(&sampled.tokens)
                .chain(sampled.logprobs.iter().flat_map(LogprobArrays::arrays)),
        )?;
        if self.steps.is_multiple_of(STEPS_PER_CLEARING) {
            mlx_rs::memory::clear_cache()?;
        }
        let ids = self.decoding.iter().map(|sequence| sequence.id).collect();
        let queued = InFlight {
            ids,
            tokens: sampled.tokens,
            logprobs: sampled.logprobs,
        };
        if before.is_some() {
            self.in_flight = before;
            self.absorb()?;
        }
        self.in_flight = Some(queued);
        Ok(())
    }

    fn can_queue_ahead(&self) -> bool {
        let Some(in_flight) = &self.in_flight else {
            return false;
        };
        in_flight.ids.len() == self.decoding.len()
            && self
                .decoding
                .iter()
                .zip(&in_flight.ids)
                .all(|(sequence, &id)| sequence.id == id && !sequence.choice.waits_for_host())
    }

    /// The host must know all tokens before it draws.
    fn draws_from_history(&self) -> bool {
        self.decoding
            .iter()
            .any(|sequence| sequence.choice.draws_from_history())
    }

    /// The last token of each sequence, all of which the host knows.
    fn last_tokens(&self) -> Array {
        let tokens: Vec<u32> = self
            .decoding
            .iter()
            .map(|sequence| sequence.choice.history().last().copied().unwrap_or(0))
            .collect();
        Array::from_slice(&tokens, &[tokens.len() as i32])
    }

    /// Logits of the tokens that follow these, one row a sequence.
    fn forward(&mut self, tokens: &Array) -> Result<Array> {
        let model = self
            .pool
            .model()
            .ok_or(StepError::Broken("decode without a model"))?;
        let mut segments: Vec<Segment<'_>> = self
            .decoding
            .iter_mut()
            .map(|sequence| Segment {
                length: 1,
                cache: &mut sequence.cache,
                logits: LogitsRows::Last,
            })
            .collect();
        Ok(model.forward(tokens, &mut segments)?)
    }

    /// Draws one token a sequence; `in_flight` tokens of each are not yet known to the host.
    fn draw(&mut self, rows: &Rows, in_flight: usize) -> Result<Sampled> {
        let last = self
            .decoding
            .iter()
            .zip(&rows.of_tokens)
            .map(|(sequence, &row)| {
                sequence
                    .choice
                    .observes_tokens()
                    .then(|| rows.tokens.try_index(row..=row))
                    .transpose()
            })
            .collect::<mlx_rs::error::Result<Vec<_>>>()?;
        let mut drawn: Vec<_> = self
            .decoding
            .iter_mut()
            .zip(&last)
            .map(|(sequence, last)| sequence.choice.row(in_flight, last.as_ref()))
            .collect();
        sample(&rows.logits, &mut drawn)
    }

    /// Waits for the step in flight and gives its tokens to the sequences that are still here.
    fn absorb(&mut self) -> Result<()> {
        let Some(InFlight {
            ids,
            tokens,
            logprobs,
        }) = self.in_flight.take()
        else {
            return Ok(());
        };
        let tokens = tokens
            .try_as_slice::<u32>()
            .map_err(mlx_rs::error::ConversionError::from)?;
        let logprobs = logprobs.map(|arrays| arrays.read()).transpose()?;
        let mut logprobs = logprobs.unwrap_or_default().into_iter();
        let mut sequences = self.decoding.iter_mut().peekable();
        let mut ended = Vec::new();
        for (id, &token) in ids.into_iter().zip(tokens) {
            let Some(sequence) = sequences.next_if(|sequence| sequence.id == id) else {
                continue;
            };
            let wants_logprobs = sequence.choice.request.borrow().logprobs.is_some();
            let row = if wants_logprobs {
                logprobs.next()
            } else {
                None
            };
            if sequence.choice.accept(token, row.as_ref()) {
                ended.push(id);
            }
        }
        if !ended.is_empty() {
            self.has_garbage = true;
            self.decoding
                .retain(|sequence| !ended.contains(&sequence.id));
        }
        Ok(())
    }
}
