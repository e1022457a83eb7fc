//! How the next token is drawn from the logits, for each sequence by itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Sampling parameters as a client gave them.
///
/// `None` means: not given. The engine then takes the model's `generation_config.json`, then the
/// neutral value named below. Dialects check ranges; the engine trusts them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SamplingParams {
    /// 0 is greedy. Neutral: 1.
    pub temperature: Option<f32>,
    /// Smallest set of tokens whose probability reaches this. Neutral: 1.
    pub top_p: Option<f32>,
    /// That many most likely tokens. Neutral: 0 (all).
    pub top_k: Option<u32>,
    /// Tokens at least this fraction as likely as the likeliest. Neutral: 0.
    pub min_p: Option<f32>,
    /// Locally typical sampling. Neutral: 1.
    pub typical_p: Option<f32>,
    pub xtc: Option<Xtc>,
    /// Divides positive and multiplies negative logits of tokens seen in prompt or output within
    /// `penalty_window`. Neutral: 1.
    pub repetition_penalty: Option<f32>,
    /// Subtracted once from tokens of the output seen within `penalty_window`. Neutral: 0.
    pub presence_penalty: Option<f32>,
    /// Subtracted for each occurrence in the output within `penalty_window`. Neutral: 0.
    pub frequency_penalty: Option<f32>,
    /// How many of the last tokens penalties look at. `None`: all of them.
    pub penalty_window: Option<u32>,
    pub dry: Option<Dry>,
    /// Added to the logits of these tokens (−100 to 100).
    pub logit_bias: BTreeMap<u32, f32>,
    /// Same seed, same parameters, same prompt: same output, whoever else is in the batch.
    /// Choice `i` of a request uses `seed + i`. `None`: random.
    pub seed: Option<u64>,
}

/// Exclude top choices: with `probability`, all tokens above `threshold` but the least likely of
/// them are removed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Xtc {
    /// 0 to 1.
    pub probability: f32,
    /// 0 to 0.5; above 0.5 it never fires.
    pub threshold: f32,
}

/// DRY ("don't repeat yourself") penalty: a token that would extend a repeated run of length `n`
/// loses `multiplier * base^(n - allowed_length)` from its logit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dry {
    pub multiplier: f32,
    pub base: f32,
    pub allowed_length: u32,
    /// How many of the last tokens are searched. `None`: all.
    pub window: Option<u32>,
    /// Text over which a repeated run never reaches.
    pub sequence_breakers: Vec<String>,
}
