//! How text is split ahead of byte-level BPE, by the name GGUF gives to each family.
//!
//! The expressions are those of the families' own tokenizer.json files.

use serde_json::{Value, json};

use crate::Error;

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// What a family does around its merges.
#[derive(Debug)]
pub(super) struct Family {
    pub normalizer: Value,
    pub pre_tokenizer: Value,
    /// A piece that is a token as a whole is that token, whatever the merges say.
    pub ignore_merges: bool,
    /// Whether a text begins with BOS when the file does not say.
    pub adds_bos: bool,
}

/// The family of a `tokenizer.ggml.pre`; one that is not known would tokenize wrongly, so it is
/// refused.
pub(super) fn of(name: Option<&str>) -> Result<Family, Error> {
    let plain = |pre_tokenizer| Family {
        normalizer: Value::Null,
        pre_tokenizer,
        ignore_merges: false,
        adds_bos: false,
    };
    match name {
        None | Some("default" | "gpt-2" | "gpt2") => Ok(plain(byte_level(true))),
        Some("smollm" | "starcoder" | "refact" | "codeshell") => Ok(plain(sequence(
            &json!({"type": "Digits", "individual_digits": true}),
            &byte_level(true),
        ))),
        Some("qwen2" | "deepseek-r1-qwen") => Ok(Family {
            normalizer: json!({"type": "NFC"}),
            ..plain(split(QWEN2))
        }),
        Some("llama-bpe" | "llama3" | "llama-v3") => Ok(Family {
            ignore_merges: true,
            adds_bos: true,
            ..plain(split(LLAMA3))
        }),
        Some("tekken") => Ok(Family {
            ignore_merges: true,
            adds_bos: true,
            ..plain(split(TEKKEN))
        }),
        Some(other) => Err(Error::Unsupported {
            what: "pre-tokenizer",
            value: other.to_owned(),
        }),
    }
}

fn split(expression: &str) -> Value {
    sequence(
        &json!({
            "type": "Split", "pattern": {"Regex": expression},
            "behavior": "Isolated", "invert": false
        }),
        &byte_level(false),
    )
}

fn sequence(first: &Value, second: &Value) -> Value {
    json!({"type": "Sequence", "pretokenizers": [first, second]})
}

fn byte_level(use_regex: bool) -> Value {
    json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
        "use_regex": use_regex
    })
}
