//! Whether a model fits in memory, with the numbers that say so: an estimate, from its config alone.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    Machine, Precision, StoredWeights, kv_cache,
    left_out::filled,
    shape::{Shape, product},
};

/// Context that is assumed when none is given, or the model's own where that is less.
pub const DEFAULT_CONTEXT_TOKENS: u32 = 8192;

/// Above this part of what there is, a model fits but leaves little for anything else.
const TIGHT: f64 = 0.85;

/// The process without a model: code, tokenizer, buffers.
const PROCESS_BYTES: u64 = 128 << 20;

/// What is asked about a model.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// `config.json`.
    pub config: &'a Value,
    pub weights: StoredWeights,
    /// It generates text, for which keys and values are kept; encoders keep none.
    pub generates: bool,
    /// `None`: [`DEFAULT_CONTEXT_TOKENS`]. More than the model's context counts as its context.
    pub context_tokens: Option<u32>,
    /// Models that stay in memory beside this one.
    pub other_models_bytes: u64,
}

/// Whether a model fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = FitVerdict)]
pub enum Verdict {
    Fits,
    /// It fits, and little else does.
    Tight,
    No,
}

/// An estimate of the memory a model takes, and of what there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fit {
    pub verdict: Verdict,
    /// Length of the conversation that the estimate is for.
    pub context_tokens: u32,
    /// The weights as they are held, which may be more than the files.
    pub weights_bytes: u64,
    pub kv_cache_bytes: u64,
    /// Activations of a prefill chunk, and the process itself.
    pub scratch_bytes: u64,
    pub other_models_bytes: u64,
    /// The sum of the four.
    pub needed_bytes: u64,
    pub available_bytes: u64,
    /// Where `available_bytes` comes from, for a person.
    pub budget_source: String,
    /// Always true: nothing was loaded to find out.
    pub is_estimated: bool,
}

/// Estimates. A config that says too little yields the weights alone, which is the larger part.
pub fn estimate(question: &Question<'_>, machine: &Machine) -> Fit {
    let shape = Shape::of(&filled(question.config, &machine.left_out));
    let context_tokens = question
        .context_tokens
        .unwrap_or(DEFAULT_CONTEXT_TOKENS)
        .min(shape.context_length.unwrap_or(u32::MAX));
    let (_, weights_bytes) = question.weights.held(question.config, machine.precision);
    let kv_cache_bytes = if question.generates {
        kv_cache::bytes(&shape, context_tokens, machine)
    } else {
        0
    };
    let scratch_bytes =
        PROCESS_BYTES.saturating_add(scratch_bytes(&shape, context_tokens, machine));
    let needed_bytes = [kv_cache_bytes, scratch_bytes, question.other_models_bytes]
        .into_iter()
        .fold(weights_bytes, u64::saturating_add);
    Fit {
        verdict: verdict(needed_bytes, machine.budget.bytes),
        context_tokens,
        weights_bytes,
        kv_cache_bytes,
        scratch_bytes,
        other_models_bytes: question.other_models_bytes,
        needed_bytes,
        available_bytes: machine.budget.bytes,
        budget_source: machine.budget.source.clone(),
        is_estimated: true,
    }
}

fn verdict(needed_bytes: u64, available_bytes: u64) -> Verdict {
    if needed_bytes > available_bytes {
        Verdict::No
    } else if needed_bytes as f64 > available_bytes as f64 * TIGHT {
        Verdict::Tight
    } else {
        Verdict::Fits
    }
}

/// Activations while one chunk of the prompt is computed: the widest layer, and on CPUs, where
/// attention is not fused, its scores.
fn scratch_bytes(shape: &Shape, context_tokens: u32, machine: &Machine) -> u64 {
    let rows = u64::from(machine.prefill_chunk_tokens.min(context_tokens));
    let widths = 6 * shape.hidden + 3 * shape.intermediate;
    let scores = match machine.precision {
        Precision::Checkpoint => 0,
        Precision::Float32 { .. } => product(&[rows, u64::from(context_tokens), shape.heads]),
    };
    product(&[rows, widths])
        .saturating_add(scores)
        .saturating_add(shape.vocabulary)
        .saturating_mul(shape.value_bytes(machine.precision))
}
