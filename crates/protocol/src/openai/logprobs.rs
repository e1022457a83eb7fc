//! Log probabilities in the shape of chat completions and in the older one of completions.

use macmlx_inference::TokenLogprob;
use serde_json::{Map, Value, json};

/// What OpenAI reports for a token that cannot come; JSON has no infinity.
const LEAST: f32 = -9999.0;

/// Entries of `logprobs.content` of a chat completion.
pub(super) fn chat_entries(tokens: &[TokenLogprob]) -> Vec<Value> {
    tokens
        .iter()
        .map(|token| {
            let top: Vec<Value> = token
                .top
                .iter()
                .map(|candidate| entry(&candidate.bytes, Some(candidate.logprob)))
                .collect();
            let mut entry = entry(&token.bytes, token.logprob);
            entry["top_logprobs"] = top.into();
            entry
        })
        .collect()
}

fn entry(bytes: &[u8], logprob: Option<f32>) -> Value {
    json!({
        "token": String::from_utf8_lossy(bytes),
        "logprob": logprob.map_or(LEAST, finite),
        "bytes": bytes,
    })
}

pub(crate) fn finite(logprob: f32) -> f32 {
    // NaN is not greater than anything, so it ends as the least too.
    if logprob > LEAST { logprob } else { LEAST }
}

/// `logprobs` of a completion, grown piece by piece.
#[derive(Debug, Default)]
pub(super) struct Legacy {
    tokens: Vec<Value>,
    token_logprobs: Vec<Value>,
    top_logprobs: Vec<Value>,
    text_offset: Vec<usize>,
}

impl Legacy {
    /// `offset`: characters of the whole text before these tokens, moved past them.
    pub(super) fn add(&mut self, tokens: &[TokenLogprob], wants_top: bool, offset: &mut usize) {
        for token in tokens {
            let text = String::from_utf8_lossy(&token.bytes);
            self.top_logprobs.push(match token.logprob {
                // The sampled token is always among them.
                Some(logprob) if wants_top => {
                    let mut top: Map<String, Value> = token
                        .top
                        .iter()
                        .map(|candidate| {
                            let text = String::from_utf8_lossy(&candidate.bytes).into_owned();
                            (text, finite(candidate.logprob).into())
                        })
                        .collect();
                    top.entry(text.clone()).or_insert(finite(logprob).into());
                    top.into()
                }
                _ => Value::Null,
            });
            self.token_logprobs.push(token.logprob.map(finite).into());
            self.tokens.push(text.into_owned().into());
            self.text_offset.push(*offset);
            *offset += characters(&token.bytes);
        }
    }

    /// Adds what another piece of the same choice held.
    pub(super) fn append(&mut self, mut other: Self) {
        self.tokens.append(&mut other.tokens);
        self.token_logprobs.append(&mut other.token_logprobs);
        self.top_logprobs.append(&mut other.top_logprobs);
        self.text_offset.append(&mut other.text_offset);
    }

    pub(super) fn into_value(self, wants_top: bool) -> Value {
        json!({
            "tokens": self.tokens,
            "token_logprobs": self.token_logprobs,
            "top_logprobs": wants_top.then_some(self.top_logprobs),
            "text_offset": self.text_offset,
        })
    }
}

/// Characters that begin in these bytes; a token may hold only part of one.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use macmlx_inference::LogprobCandidate;

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
        let mut legacy = Legacy::default();
        let mut offset = 10;
        let euro = "€".as_bytes();
        let tokens = [
            token(b"a", Some(-1.0)),
            token(&euro[..2], Some(-1.0)),
            token(&euro[2..], Some(-1.0)),
            token(b"b", Some(-1.0)),
        ];
        legacy.add(&tokens, true, &mut offset);
        assert_eq!(offset, 13);
        let value = legacy.into_value(true);
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
