//! Fields that would change the answer and that are refused by name rather than ignored.

use serde_json::Value;

use super::grammar::{TAGS, WHITESPACE};
use crate::Error;

/// A field, the values that ask for nothing, and why the others are refused. `null` always asks
/// for nothing.
pub(super) struct Field {
    name: &'static str,
    is_harmless: fn(&Value) -> bool,
    reason: &'static str,
}

pub(super) const fn field(
    name: &'static str,
    is_harmless: fn(&Value) -> bool,
    reason: &'static str,
) -> Field {
    Field {
        name,
        is_harmless,
        reason,
    }
}

const NO_SAMPLER: &str = "this sampler is not available";
const NO_BEAMS: &str = "there is no beam search";
const OWN_TEMPLATE: &str = "the model's own chat template is used";
const TEXT_ONLY: &str = "only text is produced";

/// Refused by every generating endpoint.
const EVERYWHERE: &[Field] = &[
    field("guided_whitespace_pattern", is_empty, WHITESPACE),
    field("structural_tag", is_empty, TAGS),
    field(
        "bad_words",
        is_empty,
        "words cannot be banned; `logit_bias` bans tokens",
    ),
    field(
        "allowed_token_ids",
        is_empty,
        "tokens cannot be limited to a list",
    ),
    field(
        "logits_processors",
        is_empty,
        "processors cannot be sent in",
    ),
    field("use_beam_search", is_false, NO_BEAMS),
    field("length_penalty", is_one, NO_BEAMS),
    field("early_stopping", is_false, NO_BEAMS),
    field("mirostat", is_zero, NO_SAMPLER),
    field("dynatemp_range", is_zero, NO_SAMPLER),
    field("top_n_sigma", is_not_positive, NO_SAMPLER),
    field("tfs_z", is_one, NO_SAMPLER),
    field("top_a", is_zero, NO_SAMPLER),
    field("smoothing_factor", is_zero, NO_SAMPLER),
    field("samplers", is_empty, "the order of samplers is fixed"),
    field(
        "include_stop_str_in_output",
        is_false,
        "stop sequences are never part of the output",
    ),
    field(
        "skip_special_tokens",
        is_true,
        "special tokens are never part of the output",
    ),
    field(
        "truncate_prompt_tokens",
        never,
        "prompts are never shortened",
    ),
    field(
        "prompt_logprobs",
        never,
        "use `echo` with `logprobs` of /v1/completions",
    ),
    field(
        "return_tokens_as_token_ids",
        is_false,
        "tokens are given as text and bytes",
    ),
    field(
        "return_token_ids",
        is_false,
        "tokens are given as text and bytes",
    ),
    field(
        "adapters",
        is_empty,
        "adapters cannot be chosen for a request",
    ),
    field(
        "kv_bits",
        is_zero,
        "the precision of the KV cache cannot be chosen for a request",
    ),
];

const CHAT: &[Field] = &[
    field("prediction", is_empty, "predicted output is not available"),
    field("modalities", is_only_text, TEXT_ONLY),
    field("audio", is_empty, TEXT_ONLY),
    field(
        "web_search_options",
        never,
        "the server does not search the web",
    ),
    field("echo", is_false, "use /v1/completions"),
    field("suffix", is_empty, "use /v1/completions"),
    field("best_of", is_one, "choices are not ranked; use `n`"),
    field("chat_template", is_empty, OWN_TEMPLATE),
    field("role_mapping", is_empty, OWN_TEMPLATE),
    field("documents", is_empty, "put documents into a message"),
    field("add_special_tokens", is_false, OWN_TEMPLATE),
    field("include_reasoning", is_true, "reasoning is always reported"),
    field(
        "separate_reasoning",
        is_true,
        "reasoning is always reported apart from the answer",
    ),
];

const COMPLETIONS: &[Field] = &[
    field(
        "suffix",
        is_empty,
        "text cannot be filled in before a suffix",
    ),
    field(
        "add_special_tokens",
        is_true,
        "prompts begin as the tokenizer wants them to",
    ),
    field("prompt_embeds", is_empty, "prompts are text or tokens"),
];

/// Refuses what a chat completion cannot honour.
pub(super) fn check_chat(body: &Value) -> Result<(), Error> {
    check(body, EVERYWHERE)?;
    check(body, CHAT)
}

/// Refuses what a completion cannot honour.
pub(super) fn check_completions(body: &Value) -> Result<(), Error> {
    check(body, EVERYWHERE)?;
    check(body, COMPLETIONS)
}

pub(super) fn check(body: &Value, table: &[Field]) -> Result<(), Error> {
    for field in table {
        match body.get(field.name) {
            None | Some(Value::Null) => {}
            Some(value) if (field.is_harmless)(value) => {}
            Some(_) => return Err(Error::unsupported(field.name, field.reason)),
        }
    }
    Ok(())
}

pub(super) fn never(_: &Value) -> bool {
    false
}

pub(super) fn is_true(value: &Value) -> bool {
    value == true
}

pub(super) fn is_false(value: &Value) -> bool {
    value == false
}

pub(super) fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}

pub(super) fn is_one(value: &Value) -> bool {
    value.as_f64() == Some(1.0)
}

fn is_not_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number <= 0.0)
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_only_text(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|modalities| modalities.iter().all(|modality| modality == "text"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (name, value) in [
            ("guided_whitespace_pattern", json!("[ ]?")),
            ("structural_tag", json!("{}")),
            ("prediction", json!({"type": "content", "content": "x"})),
            ("modalities", json!(["text", "audio"])),
            ("web_search_options", json!({})),
            ("mirostat", json!(2)),
        ] {
            assert!(
                matches!(
                    check_chat(&json!({name: value})),
                    Err(Error::Unsupported { param, .. }) if param == name
                ),
                "{name}"
            );
        }
        assert!(check_completions(&json!({"suffix": "end"})).is_err());
    }

    #[test]
    fn values_that_ask_for_nothing_are_taken() {
        let body = json!({
            "modalities": ["text"],
            "mirostat": 0,
            "skip_special_tokens": true,
            "length_penalty": 1.0,
            "prediction": null,
            "something_new": {"a": 1},
        });
        assert_eq!(check_chat(&body), Ok(()));
    }
}
