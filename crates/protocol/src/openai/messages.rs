//! Conversation turns as clients of chat completions send and replay them.

use std::collections::HashMap;

use macmlx_inference::{ContentPart, Message, Role, ToolCall};
use serde::Deserialize;
use serde_json::Value;

use crate::{Error, json::fields_at};

#[derive(Debug, Deserialize)]
struct Turn {
    role: String,
    content: Option<Content>,
    name: Option<String>,
    refusal: Option<String>,
    /// Thinking as vLLM, DeepSeek and this server spell it; `reasoning` is OpenRouter's.
    reasoning_content: Option<String>,
    reasoning: Option<Value>,
    tool_calls: Option<Vec<Value>>,
    tool_call_id: Option<String>,
    /// The answer begins with this turn: DashScope's and Mistral's words for it.
    partial: Option<bool>,
    prefix: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a string or an array of content parts")]
enum Content {
    Text(String),
    Parts(Vec<Value>),
}

#[derive(Debug, Deserialize)]
struct Call {
    id: Option<String>,
    function: Function,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    arguments: Option<Value>,
}

/// A conversation in neutral terms.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) messages: Vec<Message>,
    /// The last turn says that it is to be continued.
    pub(super) is_partial: bool,
}

impl Conversation {
    /// An assistant's last turn is either continued or answered; vLLM's two switches say which.
    pub(super) fn is_continued(
        &self,
        continue_final_message: Option<bool>,
        add_generation_prompt: Option<bool>,
    ) -> Result<bool, Error> {
        let is_continued = continue_final_message.unwrap_or(self.is_partial);
        let ends_with_assistant = self
            .messages
            .last()
            .is_some_and(|message| message.role == Role::Assistant);
        match (is_continued, add_generation_prompt) {
            (true, _) if !ends_with_assistant => Err(Error::invalid(
                "continue_final_message",
                "continue_final_message: the last message is not an assistant's",
            )),
            (true, Some(true)) => Err(Error::invalid(
                "add_generation_prompt",
                "add_generation_prompt and continue_final_message exclude each other",
            )),
            (false, Some(false)) => Err(Error::unsupported(
                "add_generation_prompt",
                "an answer always begins a new turn, unless continue_final_message is true",
            )),
            _ => Ok(is_continued),
        }
    }
}

/// Reads `messages`.
pub(super) fn conversation(turns: &[Value]) -> Result<Conversation, Error> {
    if turns.is_empty() {
        return Err(Error::invalid("messages", "messages is empty"));
    }
    let mut messages = Vec::with_capacity(turns.len());
    let mut is_partial = false;
    let mut open_calls = HashMap::new();
    for (index, turn) in turns.iter().enumerate() {
        let path = format!("messages[{index}]");
        let turn: Turn = fields_at(turn, &path)?;
        is_partial = turn.partial == Some(true) || turn.prefix == Some(true);
        let mut message = message(turn, &path)?;
        match message.role {
            Role::Tool => answer_call(&mut message, &mut open_calls, &path)?,
            Role::Assistant => open_calls.extend(
                message
                    .tool_calls
                    .iter()
                    .map(|call| (call.id.clone(), call.name.clone())),
            ),
            Role::System | Role::User => {}
        }
        messages.push(message);
    }
    Ok(Conversation {
        messages,
        is_partial,
    })
}

fn message(turn: Turn, path: &str) -> Result<Message, Error> {
    let role = match turn.role.as_str() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => {
            let param = format!("{path}.role");
            let message =
                format!("{param} is system, developer, user, assistant or tool, not `{other}`");
            return Err(Error::invalid(param, message));
        }
    };
    let mut content = Vec::new();
    let mut reasoning = turn.reasoning_content.or(match turn.reasoning {
        Some(Value::String(text)) => Some(text),
        _ => None,
    });
    match turn.content {
        None => {}
        Some(Content::Text(text)) => content.push(ContentPart::Text(text)),
        Some(Content::Parts(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                match read_part(part, &format!("{path}.content[{index}]"))? {
                    Part::Text(text) => content.push(ContentPart::Text(text)),
                    Part::Reasoning(text) => reasoning.get_or_insert_default().push_str(&text),
                }
            }
        }
    }
    if content.is_empty() {
        content.extend(turn.refusal.map(ContentPart::Text));
    }
    let mut tool_calls = Vec::new();
    for (index, call) in turn.tool_calls.unwrap_or_default().iter().enumerate() {
        tool_calls.push(read_call(call, &format!("{path}.tool_calls[{index}]"))?);
    }
    Ok(Message {
        role,
        content,
        reasoning: reasoning.filter(|text| !text.is_empty()),
        tool_calls,
        tool_call_id: turn.tool_call_id,
        name: turn.name,
    })
}

enum Part {
    Text(String),
    Reasoning(String),
}

fn read_part(part: &Value, path: &str) -> Result<Part, Error> {
    if let Value::String(text) = part {
        return Ok(Part::Text(text.clone()));
    }
    let text_of = |field: &str| match part.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(not_text(format!("{path}.{field}"))),
    };
    match part.get("type").and_then(Value::as_str) {
        Some("text" | "input_text" | "output_text") => Ok(Part::Text(text_of("text")?)),
        Some("refusal") => Ok(Part::Text(text_of("refusal")?)),
        Some("thinking") => Ok(Part::Reasoning(text_of("thinking")?)),
        Some("reasoning") => Ok(Part::Reasoning(text_of("text")?)),
        Some("image_url" | "input_image" | "image") => {
            Err(Error::unsupported(path, "the model does not see images"))
        }
        Some("input_audio" | "audio_url") => {
            Err(Error::unsupported(path, "the model does not hear audio"))
        }
        Some("file" | "input_file" | "video_url") => {
            Err(Error::unsupported(path, "only text is read"))
        }
        Some(other) => Err(Error::unsupported(
            path,
            format!("content parts of type `{other}` are not known"),
        )),
        None => Err(not_text(format!("{path}.type"))),
    }
}

fn not_text(param: String) -> Error {
    let message = format!("{param} must be a string");
    Error::invalid(param, message)
}

fn read_call(call: &Value, path: &str) -> Result<ToolCall, Error> {
    let call: Call = fields_at(call, path)?;
    let Some(id) = call.id.filter(|id| !id.is_empty()) else {
        let param = format!("{path}.id");
        let message = format!("{param} is missing");
        return Err(Error::invalid(param, message));
    };
    Ok(ToolCall {
        id,
        name: call.function.name,
        arguments: match call.function.arguments {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(text)) if text.trim().is_empty() => "{}".to_owned(),
            Some(Value::String(text)) => text,
            // Some clients replay the object itself.
            Some(value) => value.to_string(),
        },
    })
}

/// Each result answers a call made before it, once.
fn answer_call(
    message: &mut Message,
    open_calls: &mut HashMap<String, String>,
    path: &str,
) -> Result<(), Error> {
    let param = format!("{path}.tool_call_id");
    let Some(id) = &message.tool_call_id else {
        let reason = format!("{param} is missing");
        return Err(Error::invalid(param, reason));
    };
    let Some(name) = open_calls.remove(id) else {
        let reason = format!(
            "{param}: no earlier assistant turn made a call `{id}` that is still unanswered"
        );
        return Err(Error::invalid(param, reason));
    };
    message.name.get_or_insert(name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(turns: &Value) -> Result<Conversation, Error> {
        conversation(turns.as_array().unwrap())
    }

    fn refused(turns: &Value) -> String {
        match read(turns).unwrap_err() {
            Error::Invalid { param, .. } => param.unwrap(),
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_string_and_parts_are_the_same_text() {
        for content in [
            json!("ab"),
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": {}}]),
            json!(["a", {"type": "input_text", "text": "b"}]),
        ] {
            for role in ["system", "developer", "user", "assistant"] {
                let turns = json!([{"role": role, "content": content}]);
                assert_eq!(read(&turns).unwrap().messages[0].joined_text(), "ab");
            }
        }
    }

    #[test]
    fn tool_turns_are_replayed() {
        let turns = json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "refusal": null, "reasoning_content": "hm",
             "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                {"id": "c2", "function": {"name": "g", "arguments": {"b": 2}}},
                {"id": "c3", "function": {"name": "h", "arguments": ""}},
             ]},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
        ]);
        let messages = read(&turns).unwrap().messages;
        assert_eq!(messages[1].reasoning.as_deref(), Some("hm"));
        let arguments: Vec<_> = messages[1]
            .tool_calls
            .iter()
            .map(|call| call.arguments.as_str())
            .collect();
        assert_eq!(arguments, ["{\"a\":1}", "{\"b\":2}", "{}"]);
        assert_eq!(messages[2].name.as_deref(), Some("g"));
        assert_eq!(messages[3].name.as_deref(), Some("f"));
    }

    #[test]
    fn wrong_turns_are_named() {
        for (turns, param) in [
            (json!([]), "messages"),
            (
                json!([{"role": "robot", "content": ""}]),
                "messages[0].role",
            ),
            (json!([{"content": ""}]), "messages[0].role"),
            (
                json!([{"role": "user", "content": 5}]),
                "messages[0].content",
            ),
            (
                json!([{"role": "user", "content": [{"type": "text"}]}]),
                "messages[0].content[0].text",
            ),
            (
                json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
                "messages[0].content[0]",
            ),
            (
                json!([{"role": "tool", "content": "x"}]),
                "messages[0].tool_call_id",
            ),
            (
                json!([{"role": "tool", "tool_call_id": "c", "content": "x"}]),
                "messages[0].tool_call_id",
            ),
            (
                json!([{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}]),
                "messages[0].tool_calls[0].id",
            ),
            (
                json!([{"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}]),
                "messages[0].tool_calls[0].function.name",
            ),
            (json!(["hello"]), "messages[0]"),
        ] {
            assert_eq!(refused(&turns), param, "{turns}");
        }
    }

    #[test]
    fn a_call_is_answered_once() {
        let turns = json!([
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
            {"role": "tool", "tool_call_id": "c", "content": "2"},
        ]);
        assert_eq!(refused(&turns), "messages[2].tool_call_id");
    }

    #[test]
    fn the_last_turn_may_ask_to_be_continued() {
        let turns = json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b", "prefix": true},
        ]);
        let conversation = read(&turns).unwrap();
        assert_eq!(conversation.is_continued(None, None), Ok(true));
        assert_eq!(conversation.is_continued(Some(false), None), Ok(false));
        assert_eq!(conversation.is_continued(None, Some(false)), Ok(true));
        assert!(conversation.is_continued(None, Some(true)).is_err());
        assert!(conversation.is_continued(Some(false), Some(false)).is_err());
        let asked = read(&json!([{"role": "user", "content": "a"}])).unwrap();
        assert!(asked.is_continued(Some(true), None).is_err());
    }
}
