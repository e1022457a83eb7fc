//! Log probabilities in the shape of chat completions and in the older one of completions.

use macmlx_inference::TokenLogprob;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::json;

/// What OpenAI reports for a token that cannot come; JSON has no infinity.
const LEAST: f32 = -9999.0;

/// A token of the answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Token {
    #[serde(flatten)]
    itself: Candidate,
    /// Most likely tokens at its place.
    top_logprobs: Vec<Candidate>,
}

/// A token and how likely it was.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Candidate {
    token: String,
    logprob: f64,
    /// The token's own bytes, which need not be text on their own.
    bytes: Vec<u8>,
}

impl Candidate {
    fn new(bytes: &[u8], logprob: Option<f32>) -> Self {
        Self {
            token: String::from_utf8_lossy(bytes).into_owned(),
            logprob: logprob.map_or(LEAST, finite).into(),
            bytes: bytes.to_vec(),
        }
    }
}

/// Entries of `logprobs.content` of a chat completion.
pub(crate) fn chat_entries(tokens: &[TokenLogprob]) -> Vec<Value> {
    tokens
        .iter()
        .map(|token| {
            json::value(&Token {
                itself: Candidate::new(&token.bytes, token.logprob),
                top_logprobs: token
                    .top
                    .iter()
                    .map(|candidate| Candidate::new(&candidate.bytes, Some(candidate.logprob)))
                    .collect(),
            })
        })
        .collect()
}

fn finite(logprob: f32) -> f32 {
    // NaN is not greater than anything, so it ends as the least too.
    if logprob > LEAST { logprob } else { LEAST }
}

/// `logprobs` of a completion, grown piece by piece.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct Legacy {
    tokens: Vec<String>,
    /// `null` for the first token of a prompt.
    token_logprobs: Vec<Option<f64>>,
    /// Tokens and their log probabilities, for each place; `null` where none were asked for.
    #[schema(value_type = Option<Vec<Option<std::collections::HashMap<String, f64>>>>)]
    top_logprobs: Option<Vec<Value>>,
    /// Characters before each token.
    text_offset: Vec<usize>,
}

impl Legacy {
    /// `wants_top`: alternatives are reported, too.
    pub(super) fn new(wants_top: bool) -> Self {
        Self {
            top_logprobs: wants_top.then(Vec::new),
            ..Self::default()
        }
    }

    /// `offset`: characters of the whole text before these tokens, moved past them.
    pub(super) fn add(&mut self, tokens: &[TokenLogprob], offset: &mut usize) {
        for token in tokens {
            let text = String::from_utf8_lossy(&token.bytes).into_owned();
            if let Some(top) = &mut self.top_logprobs {
                top.push(alternatives(token, &text));
            }
            self.token_logprobs
                .push(token.logprob.map(|logprob| finite(logprob).into()));
            self.tokens.push(text);
            self.text_offset.push(*offset);
            *offset += characters(&token.bytes);
        }
    }

    /// Adds what another piece of the same choice held.
    pub(super) fn append(&mut self, mut other: Self) {
        self.tokens.append(&mut other.tokens);
        self.token_logprobs.append(&mut other.token_logprobs);
        self.text_offset.append(&mut other.text_offset);
        if let Some(mut top) = other.top_logprobs {
            self.top_logprobs.get_or_insert_default().append(&mut top);
        }
    }
}

/// Texts and log probabilities; the sampled token is always among them.
fn alternatives(token: &TokenLogprob, text: &str) -> Value {
    let Some(logprob) = token.logprob else {
        return Value::Null;
    };
    let mut top: Map<String, Value> = token
        .top
        .iter()
        .map(|candidate| {
            let text = String::from_utf8_lossy(&candidate.bytes).into_owned();
            (text, finite(candidate.logprob).into())
        })
        .collect();
    top.entry(text).or_insert(finite(logprob).into());
    top.into()
}

/// Characters that begin in these bytes; a token may hold only part of one.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use macmlx_inference::LogprobCandidate;
    use serde_json::json;

    use super::*;

    fn token(bytes: &[u8], logprob: Option<f32>) -> TokenLogprob {
        TokenLogprob {
            id: 0,
            bytes: bytes.to_vec(),
            logprob,
            top: vec![LogprobCandidate {
                id: 1,
                bytes: b"x".to_vec(),
                logprob: -0.5,
            }],
        }
    }

    #[test]
    fn offsets_count_characters_over_split_ones() {
        let mut legacy = Legacy::new(true);
        let mut offset = 10;
        let euro = "€".as_bytes();
        let tokens = [
            token(b"a", Some(-1.0)),
            token(&euro[..2], Some(-1.0)),
            token(&euro[2..], Some(-1.0)),
            token(b"b", Some(-1.0)),
        ];
        legacy.add(&tokens, &mut offset);
        assert_eq!(offset, 13);
        let value = crate::json::value(&legacy);
        assert_eq!(value["text_offset"], json!([10, 11, 12, 12]));
        assert_eq!(value["top_logprobs"][0], json!({"x": -0.5, "a": -1.0}));
    }

    #[test]
    fn impossible_tokens_have_a_number() {
        let entries = chat_entries(&[
            token(b"a", Some(f32::NEG_INFINITY)),
            token(b"b", Some(f32::NAN)),
        ]);
        assert_eq!(entries[0]["logprob"], json!(-9999.0));
        assert_eq!(entries[1]["logprob"], json!(-9999.0));
        assert_eq!(entries[0]["bytes"], json!([97]));
    }
}
