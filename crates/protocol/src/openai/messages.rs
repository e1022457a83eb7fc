//! Conversation turns as clients of chat completions send and replay them.

use macmlx_inference::{ContentPart, Message, Role, ToolCall};
use serde::Deserialize;
use serde_json::Value;

use super::{freeform, image};
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
    for (index, turn) in turns.iter().enumerate() {
        let path = format!("messages[{index}]");
        let turn: Turn = fields_at(turn, &path)?;
        is_partial = turn.partial == Some(true) || turn.prefix == Some(true);
        let is_function = turn.role == "function";
        let mut message = message(turn, index, &path)?;
        match message.role {
            Role::Tool if is_function => open_calls.answer_by_name(&mut message, &path)?,
            Role::Tool => open_calls.answer(&mut message, &path)?,
            Role::Assistant => open_calls.0.extend(message.tool_calls.iter().cloned()),
            Role::System | Role::User => {}
        }
        messages.push(message);
    }
    Ok(Conversation {
        messages,
        is_partial,
    })
}

fn message(turn: Turn, index: usize, path: &str) -> Result<Message, Error> {
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
    let mut reasoning = turn.reasoning_content.or(match turn.reasoning {
        Some(Value::String(text)) => Some(text),
        _ => None,
    });
    match turn.content {
        None if matches!(role, Role::System | Role::User) => {
            let param = format!("{path}.content");
            let message = format!("{param} is missing");
            return Err(Error::invalid(param, message));
        }
        None => {}
        Some(Content::Text(text)) => content.push(ContentPart::Text(text)),
        Some(Content::Parts(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                match read_part(part, &format!("{path}.content[{index}]"))? {
                    Part::Content(part) => push(&mut content, part),
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
    if let Some(function) = turn.function_call {
        // Such a call has no id; its place is as good.
        tool_calls.push(function.into_call(format!("call_of_message_{index}")));
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

/// Texts that follow each other are one: the prompt does not depend on how a client cuts them.
fn push(content: &mut Vec<ContentPart>, part: ContentPart) {
    match (content.last_mut(), part) {
        (Some(ContentPart::Text(before)), ContentPart::Text(text)) => before.push_str(&text),
        (_, part) => content.push(part),
    }
}

enum Part {
    Content(ContentPart),
    Reasoning(String),
}

fn read_part(part: &Value, path: &str) -> Result<Part, Error> {
    if let Value::String(text) = part {
        return Ok(Part::Content(ContentPart::Text(text.clone())));
    }
    let text_of = |field: &str| match part.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(not_text(format!("{path}.{field}"))),
    };
    let content = |text: String| Part::Content(ContentPart::Text(text));
    match part.get("type").and_then(Value::as_str) {
        Some("text" | "input_text" | "output_text") => text_of("text").map(content),
        Some("refusal") => text_of("refusal").map(content),
        Some("thinking") => Ok(Part::Reasoning(text_of("thinking")?)),
        Some("reasoning") => Ok(Part::Reasoning(text_of("text")?)),
        Some("image_url" | "input_image") => {
            // The Responses API's spelling has the address itself.
            let url = match part.get("image_url") {
                Some(Value::Object(image)) => image.get("url"),
                url => url,
            };
            match url.and_then(Value::as_str) {
                Some(url) => Ok(Part::Content(image::part(url, path))),
                None => Err(not_text(format!("{path}.image_url.url"))),
            }
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

/// Calls without a result so far, in order. Servers that number calls give an id twice.
#[derive(Debug, Default)]
struct OpenCalls(Vec<ToolCall>);

impl OpenCalls {
    /// Each result answers a call made before it, once.
    fn answer(&mut self, message: &mut Message, path: &str) -> Result<(), Error> {
        let param = format!("{path}.tool_call_id");
        let Some(id) = &message.tool_call_id else {
            let reason = format!("{param} is missing");
            return Err(Error::invalid(param, reason));
        };
        let Some(index) = self.0.iter().position(|call| call.id == *id) else {
            let reason = format!(
                "{param}: no earlier assistant turn made a call `{id}` that is still unanswered"
            );
            return Err(Error::invalid(param, reason));
        };
        let call = self.0.remove(index);
        message.name.get_or_insert(call.name);
        Ok(())
    }

    /// As [`Self::answer`] for results that know their function only.
    fn answer_by_name(&mut self, message: &mut Message, path: &str) -> Result<(), Error> {
        let param = format!("{path}.name");
        let Some(name) = &message.name else {
            let reason = format!("{param} is missing");
            return Err(Error::invalid(param, reason));
        };
        let Some(index) = self.0.iter().position(|call| call.name == *name) else {
            let reason = format!(
                "{param}: no earlier assistant turn called `{name}` and is still unanswered"
            );
            return Err(Error::invalid(param, reason));
        };
        message.tool_call_id = Some(self.0.remove(index).id);
        Ok(())
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
            image::part("data:image/png;base64,AA==", "messages[0].content[1]")
        );
        assert_eq!(
            content[2],
            image::part("http://localhost/a.png", "messages[0].content[2]")
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
