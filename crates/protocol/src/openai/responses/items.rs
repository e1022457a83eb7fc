//! Input items as they are kept and listed: every one with an id, every message with parts.

use serde_json::{Map, Value, json};

/// The item that stands for input which is only a string.
pub(super) fn of_text(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// Fills in what the client left out. `suffix` makes the id unique.
pub(super) fn complete(item: Value, suffix: &str) -> Value {
    let Value::Object(given) = item else {
        return item;
    };
    let kind = match given.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        _ => "message".to_owned(),
    };
    let id = match given.get("id") {
        Some(Value::String(id)) if !id.is_empty() => id.clone(),
        _ => format!("{}_{suffix}", prefix(&kind)),
    };
    let mut item = Map::new();
    item.insert("type".to_owned(), kind.clone().into());
    item.insert("id".to_owned(), id.into());
    if kind != "reasoning" && kind != "additional_tools" {
        item.insert("status".to_owned(), "completed".into());
    }
    let role = given.get("role").cloned();
    item.extend(
        given
            .into_iter()
            .filter(|(name, value)| match name.as_str() {
                "type" | "id" => false,
                "status" => !value.is_null(),
                _ => true,
            }),
    );
    if kind == "message" {
        let is_assistant = role.is_some_and(|role| role == "assistant");
        let content = item.remove("content").unwrap_or_default();
        item.insert("content".to_owned(), parts(content, is_assistant));
    }
    Value::Object(item)
}

/// Ids begin with what they are ids of.
fn prefix(kind: &str) -> &'static str {
    match kind {
        "message" => "msg",
        "function_call" => "fc",
        "function_call_output" => "fco",
        "custom_tool_call" => "ctc",
        "custom_tool_call_output" => "ctco",
        "reasoning" => "rs",
        "tool_search_call" => "tsc",
        "tool_search_output" => "tso",
        "additional_tools" => "at",
        _ => "item",
    }
}

fn parts(content: Value, is_assistant: bool) -> Value {
    let kind = if is_assistant {
        "output_text"
    } else {
        "input_text"
    };
    let parts = match content {
        Value::Array(parts) => parts,
        Value::Null => Vec::new(),
        text => vec![text],
    };
    parts
        .into_iter()
        .map(|part| {
            let mut part = match part {
                text @ Value::String(_) => json!({"type": kind, "text": text}),
                part => part,
            };
            if part["type"] == "output_text" && part["annotations"].is_null() {
                part["annotations"] = json!([]);
            }
            part
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_gets_an_id_and_messages_get_parts() {
        assert_eq!(
            complete(json!({"role": "user", "content": "hi"}), "1"),
            json!({"type": "message", "id": "msg_1", "status": "completed", "role": "user",
                "content": [{"type": "input_text", "text": "hi"}]})
        );
        assert_eq!(
            complete(json!({"role": "assistant", "content": "hi"}), "1")["content"],
            json!([{"type": "output_text", "text": "hi", "annotations": []}])
        );
        assert_eq!(
            complete(
                json!({"type": "function_call_output", "call_id": "c", "output": "x"}),
                "2"
            ),
            json!({"type": "function_call_output", "id": "fco_2", "status": "completed",
                "call_id": "c", "output": "x"})
        );
    }

    #[test]
    fn what_the_client_says_stands() {
        let item = json!({"type": "message", "id": "msg_own", "status": "incomplete",
            "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]});
        assert_eq!(complete(item.clone(), "1"), item);
    }
}
