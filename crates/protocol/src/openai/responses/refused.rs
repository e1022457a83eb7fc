//! Fields of responses that would change the answer and that are refused by name.

use serde_json::Value;

use super::super::refused::{self, Field, field, is_empty, is_false, is_one};
use crate::Error;

const RESPONSES: &[Field] = &[
    field(
        "background",
        is_false,
        "responses are made while the client waits; use `stream`",
    ),
    field(
        "prompt",
        is_empty,
        "there are no stored prompt templates; send `instructions` and `input`",
    ),
    field(
        "context_management",
        is_empty,
        "conversations are not compacted by the server",
    ),
    field("moderation", is_empty, "content is not moderated"),
    field(
        "truncation",
        is_disabled,
        "prompts are never shortened; only `disabled` can be had",
    ),
    field("n", is_one, "a response has one answer"),
    field(
        "response_format",
        is_text,
        "responses have it as `text.format`",
    ),
];

/// Refuses what a response cannot honour.
pub(super) fn check(body: &Value) -> Result<(), Error> {
    refused::check_chat(body)?;
    refused::check(body, RESPONSES)
}

fn is_text(value: &Value) -> bool {
    value["type"] == "text"
}

fn is_disabled(value: &Value) -> bool {
    value == "disabled"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (name, value) in [
            ("background", json!(true)),
            ("prompt", json!({"id": "pmpt_1"})),
            ("context_management", json!([{"type": "compaction"}])),
            ("moderation", json!({"model": "m"})),
            ("truncation", json!("auto")),
            ("n", json!(2)),
            ("modalities", json!(["audio"])),
            ("response_format", json!({"type": "json_object"})),
        ] {
            assert!(
                matches!(
                    check(&json!({name: value})),
                    Err(Error::Unsupported { param, .. }) if param == name
                ),
                "{name}"
            );
        }
    }

    #[test]
    fn values_that_ask_for_nothing_are_taken() {
        let body = json!({
            "background": false,
            "prompt": null,
            "truncation": "disabled",
            "response_format": {"type": "text"},
            "client_metadata": {"a": "b"},
            "something_new": 1,
        });
        assert_eq!(check(&body), Ok(()));
    }
}
