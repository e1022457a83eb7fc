//! The whole message, built from the events of a stream as a client would build it.

use serde_json::{Map, Value};

use super::reply::{ContentBlock, Delta, Message, StreamEvent};

/// Where arguments are kept that are no JSON object. The name is the one Anthropic recommends to
/// clients for telling a model of arguments that do not parse.
const INVALID_JSON: &str = "INVALID_JSON";

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    message: Option<Message>,
    /// JSON text of the open call's arguments.
    input: String,
}

impl Assembly {
    pub(super) fn apply(&mut self, event: StreamEvent) {
        if let StreamEvent::MessageStart { message } = event {
            self.message = Some(message);
            return;
        }
        let Some(message) = &mut self.message else {
            return;
        };
        match event {
            StreamEvent::ContentBlockStart { content_block, .. } => {
                message.content.push(content_block);
            }
            StreamEvent::ContentBlockDelta { delta, .. } => {
                match (delta, message.content.last_mut()) {
                    (Delta::TextDelta { text: more }, Some(ContentBlock::Text { text })) => {
                        text.push_str(&more);
                    }
                    (
                        Delta::ThinkingDelta { thinking: more },
                        Some(ContentBlock::Thinking { thinking, .. }),
                    ) => thinking.push_str(&more),
                    (
                        Delta::SignatureDelta { signature: whole },
                        Some(ContentBlock::Thinking { signature, .. }),
                    ) => *signature = whole,
                    (
                        Delta::InputJsonDelta { partial_json },
                        Some(ContentBlock::ToolUse { .. }),
                    ) => self.input.push_str(&partial_json),
                    _ => {}
                }
            }
            StreamEvent::ContentBlockStop { .. } => {
                if let Some(ContentBlock::ToolUse { input, .. }) = message.content.last_mut() {
                    *input = arguments(&std::mem::take(&mut self.input));
                }
            }
            StreamEvent::MessageDelta { delta, usage } => {
                message.stop_reason = Some(delta.stop_reason);
                message.stop_sequence = delta.stop_sequence;
                message.usage = usage;
            }
            StreamEvent::MessageStart { .. }
            | StreamEvent::Ping
            | StreamEvent::MessageStop
            | StreamEvent::Error { .. } => {}
        }
    }

    /// `None`: the stream never began.
    pub(super) fn into_message(self) -> Option<Message> {
        self.message
    }
}

/// Arguments as an object. Those cut off by `max_tokens` or spoilt by the model are kept as text:
/// nothing is lost, and no client runs a tool with half of them.
fn arguments(text: &str) -> Map<String, Value> {
    macmlx_json::read_arguments(text)
        .unwrap_or_else(|_| Map::from_iter([(INVALID_JSON.to_owned(), text.into())]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_always_an_object_and_never_lost() {
        for (text, object) in [
            ("", json!({})),
            (" \n", json!({})),
            (r#"{"b": 1, "a": [2]}"#, json!({"b": 1, "a": [2]})),
            (r#"{"a": "cut \ud83d"}"#, json!({"a": "cut \u{fffd}"})),
            (
                r#"{"path": "/etc/ho"#,
                json!({"INVALID_JSON": "{\"path\": \"/etc/ho"}),
            ),
            ("[1]", json!({"INVALID_JSON": "[1]"})),
            ("{a: 1}", json!({"INVALID_JSON": "{a: 1}"})),
        ] {
            assert_eq!(Value::Object(arguments(text)), object, "{text}");
        }
    }
}
