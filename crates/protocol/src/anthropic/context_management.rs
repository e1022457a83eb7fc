//! `context_management`: what of an old conversation the model no longer needs to see.

use macmlx_inference::{Message, Role};
use serde_json::Value;

use super::content::wrong;
use crate::Error;

/// Applies the edits. Those that depend on token counts are refused, since the tokens have not been
/// counted yet.
pub(super) fn apply(
    context_management: Option<&Value>,
    messages: &mut [Message],
) -> Result<(), Error> {
    let edits = match context_management {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(fields)) => match fields.get("edits") {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Array(edits)) => edits,
            Some(_) => return Err(wrong("context_management.edits", "must be an array")),
        },
        Some(_) => return Err(wrong("context_management", "must be an object")),
    };
    for (index, edit) in edits.iter().enumerate() {
        let path = format!("context_management.edits[{index}]");
        match edit.get("type").and_then(Value::as_str) {
            Some("clear_thinking_20251015") => {
                if let Some(turns) = read_kept_turns(edit, &path)? {
                    clear_thinking(messages, turns);
                }
            }
            Some(other) => {
                return Err(Error::unsupported(
                    path,
                    format!("`{other}` is not available; shorten the conversation in the client"),
                ));
            }
            None => return Err(wrong(&format!("{path}.type"), "must be a string")),
        }
    }
    Ok(())
}

/// Turns whose thinking stays; `None`: all.
fn read_kept_turns(edit: &Value, path: &str) -> Result<Option<u64>, Error> {
    match &edit["keep"] {
        Value::Null => Ok(Some(1)),
        Value::String(all) if all == "all" => Ok(None),
        keep if keep["type"] == "all" => Ok(None),
        keep if keep["type"] == "thinking_turns" => match keep["value"].as_u64() {
            Some(turns @ 1..) => Ok(Some(turns)),
            _ => Err(wrong(
                &format!("{path}.keep.value"),
                "must be a positive integer",
            )),
        },
        _ => Err(wrong(
            &format!("{path}.keep"),
            "must be all or a number of thinking turns",
        )),
    }
}

/// A turn is all that is answered to one message of the user, with its calls and their results.
fn clear_thinking(messages: &mut [Message], kept: u64) {
    let mut newer_turns = 0;
    let mut has_thinking = false;
    for message in messages.iter_mut().rev() {
        match message.role {
            Role::User => {
                newer_turns += u64::from(has_thinking);
                has_thinking = false;
            }
            Role::Assistant if message.reasoning.is_some() => {
                has_thinking = true;
                if newer_turns >= kept {
                    // What a call was thought up with is remembered and put back where there is
                    // none, so there is an empty one.
                    let has_calls = !message.tool_calls.is_empty();
                    message.reasoning = has_calls.then(String::new);
                }
            }
            Role::Assistant | Role::System | Role::Tool => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use macmlx_inference::ToolCall;
    use serde_json::json;

    use super::*;

    /// Three turns, the second of them with a call between two thoughts.
    fn conversation() -> Vec<Message> {
        let thinks = |thought: &str| Message {
            reasoning: Some(thought.into()),
            ..Message::text(Role::Assistant, "said")
        };
        vec![
            Message::text(Role::User, "a"),
            thinks("1"),
            Message::text(Role::User, "b"),
            Message {
                tool_calls: vec![ToolCall {
                    id: "t".into(),
                    name: "f".into(),
                    arguments: "{}".into(),
                }],
                ..thinks("2")
            },
            Message::text(Role::Tool, "result"),
            thinks("3"),
            Message::text(Role::User, "c"),
            Message::text(Role::Assistant, "did not think"),
            Message::text(Role::User, "d"),
            thinks("4"),
        ]
    }

    fn kept(edit: &Value) -> Result<String, Error> {
        let mut messages = conversation();
        apply(Some(&json!({"edits": [edit]})), &mut messages)?;
        Ok(messages
            .into_iter()
            .filter_map(|message| message.reasoning)
            .collect())
    }

    #[test]
    fn thinking_of_the_newest_turns_stays() {
        let clear = |keep: Value| json!({"type": "clear_thinking_20251015", "keep": keep});
        let turns = |value| clear(json!({"type": "thinking_turns", "value": value}));
        for (edit, expected) in [
            (clear(json!("all")), "1234"),
            (clear(json!({"type": "all"})), "1234"),
            (json!({"type": "clear_thinking_20251015"}), "4"),
            (turns(1), "4"),
            (turns(2), "234"),
            (turns(9), "1234"),
        ] {
            assert_eq!(kept(&edit).unwrap(), expected, "{edit}");
        }
    }

    #[test]
    fn what_is_cleared_is_not_put_back_from_memory() {
        let mut messages = conversation();
        let edits = json!({"edits": [{"type": "clear_thinking_20251015"}]});
        apply(Some(&edits), &mut messages).unwrap();
        assert_eq!(messages[1].reasoning, None);
        assert_eq!(messages[3].reasoning.as_deref(), Some(""));
    }

    #[test]
    fn other_edits_are_refused_by_name() {
        for (edit, param) in [
            (
                json!({"type": "clear_tool_uses_20250919"}),
                "context_management.edits[0]",
            ),
            (
                json!({"type": "clear_thinking_20251015", "keep": 3}),
                "context_management.edits[0].keep",
            ),
            (
                json!({"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns"}}),
                "context_management.edits[0].keep.value",
            ),
            (json!({}), "context_management.edits[0].type"),
        ] {
            match kept(&edit).unwrap_err() {
                Error::Invalid { param: named, .. } => assert_eq!(named.as_deref(), Some(param)),
                Error::Unsupported { param: named, .. } => assert_eq!(named, param),
                other => panic!("{other:?}"),
            }
        }
    }
}
