//! `SentencePiece` BPE (`llama` in GGUF): merges are found again from the tokens' scores.
//!
//! `SentencePiece` joins the neighbours whose joint token scores best; BPE joins the pair that comes
//! first in its list. So every way to split a token into two tokens is a merge, and merges are in
//! the order of their token's score.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Special, TokenKind, Vocabulary};
use crate::{Error, metadata::Metadata};

/// What `SentencePiece` writes for a space.
const SPACE: &str = "\u{2581}";

pub(super) fn build(
    metadata: &Metadata,
    vocabulary: &Vocabulary<'_>,
    special: &mut Special,
) -> Result<Value, Error> {
    special.decide(metadata, true)?;
    let scores = metadata
        .floats("tokenizer.ggml.scores")?
        .ok_or_else(|| Error::MissingKey("tokenizer.ggml.scores".into()))?;
    if scores.len() != vocabulary.tokens.len() {
        return Err(Error::Damaged("scores and tokens differ in number".into()));
    }
    let unknown = special
        .unknown
        .and_then(|id| vocabulary.token(id))
        .or_else(|| {
            vocabulary
                .iter()
                .find(|(_, _, kind)| *kind == TokenKind::Unknown)
                .map(|(_, token, _)| token)
        });
    let adds_space = metadata
        .flag("tokenizer.ggml.add_space_prefix")?
        .unwrap_or(true);
    let spaces = json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE});
    let normalizer = if adds_space {
        json!({
            "type": "Sequence",
            "normalizers": [{"type": "Prepend", "prepend": SPACE}, spaces]
        })
    } else {
        spaces
    };
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if adds_space {
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": vocabulary.list_added(),
        "normalizer": normalizer,
        "pre_tokenizer": null,
        "post_processor": special.template(vocabulary),
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": unknown,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": true,
            "byte_fallback": true,
            "ignore_merges": false,
            "vocab": vocabulary.map(),
            "merges": merges(vocabulary, &scores)
        }
    }))
}

fn merges(vocabulary: &Vocabulary<'_>, scores: &[f64]) -> Vec<Value> {
    let joinable = |kind: TokenKind| match kind {
        TokenKind::Normal | TokenKind::Unused | TokenKind::UserDefined => true,
        TokenKind::Unknown | TokenKind::Control | TokenKind::Byte => false,
    };
    let ids: HashMap<&str, usize> = vocabulary
        .iter()
        .filter(|(_, _, kind)| joinable(*kind))
        .map(|(id, token, _)| (token, id))
        .collect();
    // Token, left part, right part, by id.
    let mut found: Vec<(usize, usize, usize)> = Vec::new();
    for (id, token, kind) in vocabulary.iter().filter(|(_, _, kind)| joinable(*kind)) {
        // Tokens found ahead of splitting are never put together from parts.
        if kind == TokenKind::UserDefined {
            continue;
        }
        for (border, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(border);
            if let (Some(&left), Some(&right)) = (ids.get(left), ids.get(right)) {
                found.push((id, left, right));
            }
        }
    }
    found.sort_by(|left, right| {
        scores[right.0]
            .total_cmp(&scores[left.0])
            .then_with(|| left.cmp(right))
    });
    found
        .into_iter()
        .map(|(_, left, right)| json!([vocabulary.tokens[left], vocabulary.tokens[right]]))
        .collect()
}
