//! Conversation turns as clients of chat completions send and replay them.

use macmlx_inference::{ContentPart, Message, Role, ToolCall};
use serde::Deserialize;
use serde_json::Value;

use super::freeform;
use crate::{Error, image, json::fields_at, open_calls::OpenCalls, parts, thought};

#[derive(Debug, Deserialize)]
struct Turn {
    role: String,
    content: Option<Content>,
    name: Option<String>,
    refusal: Option<String>,
    /// Base64, as Ollama's clients send images.
    images: Option<Vec<String>>,
    tool_calls: Option<Vec<Value>>,
    /// The one call of a turn, before there were tools.
    function_call: Option<Function>,
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
    function: Option<Function>,
    custom: Option<CustomCall>,
}

#[derive(Debug, Deserialize)]
struct CustomCall {
    name: String,
    input: String,
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
    let mut open_calls = OpenCalls::default();
    for (index, given) in turns.iter().enumerate() {
        let path = format!("messages[{index}]");
        let turn: Turn = fields_at(given, &path)?;
        is_partial = turn.partial == Some(true) || turn.prefix == Some(true);
        let is_function = turn.role == "function";
        let mut message = message(turn, given, index, &path)?;
        match message.role {
            Role::Tool => answer(&mut open_calls, &mut message, is_function, &path)?,
            Role::Assistant => {
                open_calls.begin_turn();
                for call in &mut message.tool_calls {
                    open_calls.add(call);
                }
            }
            Role::System | Role::User => {}
        }
        messages.push(message);
    }
    Ok(Conversation {
        messages,
        is_partial,
    })
}

/// What `system` says before all turns, as Anthropic's and Ollama's clients have it.
pub(crate) fn system(system: Option<&Value>) -> Result<Option<Message>, Error> {
    let content = match system {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => vec![ContentPart::Text(text.clone())],
        Some(Value::Array(parts)) => {
            let mut content = Vec::new();
            for part in parts::read_all(parts, "system", false)?.parts {
                push(&mut content, part);
            }
            content
        }
        Some(_) => {
            let message = "system must be a string or an array of text parts";
            return Err(Error::invalid("system", message));
        }
    };
    let message = Message {
        content,
        ..Message::text(Role::System, "")
    };
    Ok(Some(message).filter(|message| !message.joined_text().is_empty()))
}

/// Each result answers a call made before it, once. Results of functions of old know their name
/// only.
fn answer(
    calls: &mut OpenCalls,
    result: &mut Message,
    is_function: bool,
    path: &str,
) -> Result<(), Error> {
    if is_function && result.name.is_none() {
        let param = format!("{path}.name");
        let message = format!("{param} is missing");
        return Err(Error::invalid(param, message));
    }
    if calls.answer(result) {
        return Ok(());
    }
    let (field, id) = if is_function {
        ("name", result.name.as_deref())
    } else {
        ("tool_call_id", result.tool_call_id.as_deref())
    };
    Err(calls.orphan(id, &format!("{path}.{field}"), path))
}

/// `given`: the turn as it came.
fn message(turn: Turn, given: &Value, index: usize, path: &str) -> Result<Message, Error> {
    let role = match turn.role.as_str() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        other => {
            let param = format!("{path}.role");
            let message =
                format!("{param} is system, developer, user, assistant or tool, not `{other}`");
            return Err(Error::invalid(param, message));
        }
    };
    let mut content = Vec::new();
    for (index, data) in turn.images.iter().flatten().enumerate() {
        content.push(image::from_base64(data, &format!("{path}.images[{index}]")));
    }
    let mut reasoning = thought::of_turn(given, path)?;
    match turn.content {
        None if matches!(role, Role::System | Role::User) && content.is_empty() => {
            let param = format!("{path}.content");
            let message = format!("{param} is missing");
            return Err(Error::invalid(param, message));
        }
        None => {}
        Some(Content::Text(text)) => content.push(ContentPart::Text(text)),
        Some(Content::Parts(parts)) => {
            let path = format!("{path}.content");
            let read = parts::read_all(&parts, &path, role == Role::Assistant)?;
            for part in read.parts {
                push(&mut content, part);
            }
            // Some clients replay a thought in both places.
            if !reasoning.contains(&read.reasoning) {
                reasoning.push_str(&read.reasoning);
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
    if let Some(function) = turn.function_call {
        // Such a call has no id; its place is as good.
        tool_calls.push(function.into_call(format!("call_of_message_{index}")));
    }
    Ok(Message {
        role,
        content,
        reasoning: (!reasoning.is_empty()).then_some(reasoning),
        tool_calls,
        tool_call_id: turn.tool_call_id,
        name: turn.name,
    })
}

/// Texts that follow each other are one: the prompt does not depend on how a client cuts them.
fn push(content: &mut Vec<ContentPart>, part: ContentPart) {
    match (content.last_mut(), part) {
        (Some(ContentPart::Text(before)), ContentPart::Text(text)) => before.push_str(&text),
        (_, part) => content.push(part),
    }
}

fn read_call(call: &Value, path: &str) -> Result<ToolCall, Error> {
    let call: Call = fields_at(call, path)?;
    // A call without an id gets one by its place.
    let id = call.id.unwrap_or_default();
    match (call.function, call.custom) {
        (Some(function), _) => Ok(function.into_call(id)),
        (None, Some(custom)) => Ok(ToolCall {
            id,
            name: custom.name,
            arguments: freeform::arguments(&custom.input),
        }),
        (None, None) => {
            let param = format!("{path}.function");
            let message = format!("{param} is missing");
            Err(Error::invalid(param, message))
        }
    }
}

impl Function {
    fn into_call(self, id: String) -> ToolCall {
        ToolCall {
            id,
            name: self.name,
            arguments: match self.arguments {
                None | Some(Value::Null) => "{}".to_owned(),
                Some(Value::String(text)) if text.trim().is_empty() => "{}".to_owned(),
                Some(Value::String(text)) => text,
                // Some clients replay the object itself.
                Some(value) => value.to_string(),
            },
        }
    }
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
                assert_eq!(
                    read(&turns).unwrap().messages[0].content,
                    [ContentPart::Text("ab".into())]
                );
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
            (json!([{"role": "user"}]), "messages[0].content"),
            (
                json!([{"role": "system", "content": null}]),
                "messages[0].content",
            ),
            (
                json!([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]),
                "messages[0].content[0].image_url.url",
            ),
            (
                json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]),
                "messages[0].content[0]",
            ),
            (
                json!([{"role": "assistant", "tool_calls": [{"id": "c", "type": "function"}]}]),
                "messages[0].tool_calls[0].function",
            ),
            (
                json!([{"role": "function", "content": "x"}]),
                "messages[0].name",
            ),
            (
                json!([{"role": "function", "name": "f", "content": "x"}]),
                "messages[0].name",
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
    fn an_id_given_twice_is_answered_twice() {
        let turns = json!([
            {"role": "assistant", "tool_calls": [
                {"id": "0", "function": {"name": "f"}},
                {"id": "0", "function": {"name": "g"}},
            ]},
            {"role": "tool", "tool_call_id": "0", "content": "1"},
            {"role": "tool", "tool_call_id": "0", "content": "2"},
        ]);
        let messages = read(&turns).unwrap().messages;
        assert_eq!(messages[1].name.as_deref(), Some("f"));
        assert_eq!(messages[2].name.as_deref(), Some("g"));
    }

    #[test]
    fn functions_of_old_and_custom_tools_are_calls() {
        let turns = json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "done"},
            {"role": "assistant", "tool_calls": [
                {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "a\"b"}},
            ]},
        ]);
        let messages = read(&turns).unwrap().messages;
        assert_eq!(messages[1].tool_calls[0].name, "f");
        assert_eq!(
            messages[2].tool_call_id.as_ref(),
            Some(&messages[1].tool_calls[0].id)
        );
        assert_eq!(messages[3].tool_calls[0].arguments, r#"{"input":"a\"b"}"#);
    }

    #[test]
    fn images_know_their_place() {
        let turns = json!([
            {"role": "user", "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
                {"type": "input_image", "image_url": "http://localhost/a.png"},
            ]},
        ]);
        let content = &read(&turns).unwrap().messages[0].content;
        assert_eq!(
            content[1],
            image::at_url("data:image/png;base64,AA==", "messages[0].content[1]")
        );
        assert_eq!(
            content[2],
            image::at_url("http://localhost/a.png", "messages[0].content[2]")
        );
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
