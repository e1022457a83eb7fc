//! A filled gap on the wire.

use std::time::Duration;

use macmlx_inference::{Timings, TokenLogprob, Usage};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::openai::logprobs;

/// A piece of the answer: the fields that `response_fields` names, or all.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = openai::InfillPiece)]
pub struct Piece {
    #[schema(required = false)]
    pub(super) index: u32,
    #[schema(required = false)]
    pub(super) content: String,
    /// Always empty: text is told.
    #[schema(required = false)]
    pub(super) tokens: [u32; 0],
    #[schema(required = false)]
    pub(super) stop: bool,
    /// Tokens of the prompt.
    #[schema(required = false)]
    pub(super) tokens_evaluated: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<logprobs::Token>>)]
    pub(super) completion_probabilities: Option<Vec<Value>>,
}

/// The whole answer, or the end of one that came in pieces: then `content` is empty.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = openai::InfillCompletion)]
pub struct Completion {
    #[serde(flatten)]
    pub(super) piece: Piece,
    #[schema(required = false)]
    pub(super) model: String,
    #[schema(required = false)]
    pub(super) tokens_predicted: u32,
    #[schema(required = false)]
    pub(super) has_new_line: bool,
    /// The end of the context ended the answer.
    #[schema(required = false)]
    pub(super) truncated: bool,
    /// `eos`, `word` or `limit`.
    #[schema(required = false)]
    pub(super) stop_type: &'static str,
    /// The stop sequence that ended the answer.
    #[schema(required = false)]
    pub(super) stopping_word: String,
    /// Tokens of the prompt that were computed before.
    #[schema(required = false)]
    pub(super) tokens_cached: u32,
    #[schema(required = false)]
    pub(super) timings: Speeds,
}

/// Counts of tokens, and times in milliseconds.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = openai::InfillTimings)]
pub(super) struct Speeds {
    cache_n: u32,
    prompt_n: u32,
    prompt_ms: f64,
    prompt_per_token_ms: f64,
    prompt_per_second: f64,
    predicted_n: u32,
    predicted_ms: f64,
    predicted_per_token_ms: f64,
    predicted_per_second: f64,
}

impl Speeds {
    pub(super) fn of(usage: &Usage, timings: &Timings) -> Self {
        let prompt = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
        let predicted = usage.completion_tokens;
        Self {
            cache_n: usage.cached_tokens,
            prompt_n: prompt,
            prompt_ms: milliseconds(timings.prefill),
            prompt_per_token_ms: quotient(milliseconds(timings.prefill), prompt.into()),
            prompt_per_second: quotient(prompt.into(), timings.prefill.as_secs_f64()),
            predicted_n: predicted,
            predicted_ms: milliseconds(timings.decode),
            predicted_per_token_ms: quotient(milliseconds(timings.decode), predicted.into()),
            predicted_per_second: quotient(predicted.into(), timings.decode.as_secs_f64()),
        }
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Zero where there is nothing to divide by: JSON has no infinity.
fn quotient(dividend: f64, divisor: f64) -> f64 {
    if divisor > 0.0 {
        dividend / divisor
    } else {
        0.0
    }
}

/// Entries of `completion_probabilities`.
pub(super) fn probabilities(tokens: &[TokenLogprob]) -> Vec<Value> {
    let mut entries = logprobs::chat_entries(tokens);
    for (entry, token) in entries.iter_mut().zip(tokens) {
        entry["id"] = token.id.into();
        let top = entry["top_logprobs"].as_array_mut().into_iter().flatten();
        for (candidate, known) in top.zip(&token.top) {
            candidate["id"] = known.id.into();
        }
    }
    entries
}

/// The fields that are asked for, nested ones under their whole path; all of them if none is.
pub(super) fn chosen(reply: Value, fields: &[String]) -> Value {
    if fields.is_empty() {
        return reply;
    }
    let mut chosen = Map::new();
    for path in fields {
        let mut found = Some(&reply);
        for name in path.split('/') {
            found = found.and_then(|value| value.get(name));
        }
        if let Some(found) = found {
            chosen.insert(path.clone(), found.clone());
        }
    }
    chosen.into()
}
