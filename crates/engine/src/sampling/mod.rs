//! Turns logits into tokens, for each sequence by itself, on the device.
//!
//! Order, as llama.cpp's default chain has it: logit bias, repetition, presence and frequency
//! penalty, DRY, ban of end tokens, grammar; then top-k, typical, top-p, min-p, XTC; then temperature,
//! dynamic or not, and the draw. Filters therefore see probabilities at temperature 1, as in mlx-lm.
//! Where Mirostat draws, the temperature comes first and Mirostat takes the place of the filters.
//!
//! Invariants:
//! - A draw depends on the row's logits, its parameters, its seed and its step; never on rows
//!   beside it.
//! - Nothing here waits for the device.

mod batch;
mod draw;
mod dynamic_temperature;
pub(crate) mod logits_processors;
mod logprobs;
mod mirostat;
mod params;
mod random;
mod row;
mod token_counts;

#[cfg(test)]
mod tests;

pub(crate) use batch::{Sampled, sample};
pub(crate) use logprobs::{LogprobArrays, LogprobRow, logprobs};
pub(crate) use params::{GenerationDefaults, Parameters, random_seed};
pub(crate) use row::{History, Row, RowSampler, TokenText};
