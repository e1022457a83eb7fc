//! Conversation turns as clients of Ollama send and replay them.

use macmlx_inference::{ContentPart, Message, Role, ToolCall};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    Error, image,
    json::fields_at,
    open_calls::{OpenCalls, tell_result},
    parts, thought,
};

/// One turn.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::Message)]
pub(super) struct Turn {
    /// `system`, `user`, `assistant` or `tool`.
    role: String,
    #[schema(value_type = Option<String>)]
    content: Option<Content>,
    /// What the assistant thought before it said that.
    #[serde(rename = "thinking")]
    #[schema(value_type = Option<String>)]
    _thinking: Option<Value>,
    /// Base64.
    images: Option<Vec<String>>,
    tool_calls: Option<Vec<Call>>,
    /// The tool whose result this is.
    #[serde(alias = "name")]
    tool_name: Option<String>,
    tool_call_id: Option<String>,
}

/// Text, or parts as clients of other APIs write them.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a string")]
enum Content {
    Text(String),
    Parts(Vec<Value>),
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::CalledTool)]
pub(super) struct Call {
    id: Option<String>,
    function: Function,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::CalledFunction)]
pub(super) struct Function {
    name: String,
    /// An object.
    arguments: Option<Value>,
}

/// Reads `messages`. Ollama's own clients neither keep nor send the ids of calls, so calls without
/// get one by their place, and results without answer the next open call of their tool. As with
/// Ollama, clients may trim calls away and keep their results.
pub(super) fn conversation(turns: &[Value]) -> Result<Vec<Message>, Error> {
    let mut messages = Vec::with_capacity(turns.len());
    let mut open_calls = OpenCalls::default();
    for (index, turn) in turns.iter().enumerate() {
        let path = format!("messages[{index}]");
        let mut message = message(turn, &path)?;
        match message.role {
            Role::Tool => {
                if !open_calls.answer(&mut message) {
                    tell_result(&mut message);
                }
            }
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
    Ok(messages)
}

/// Images as parts of a turn; `path` is the field that holds them.
pub(super) fn images(images: Vec<String>, path: &str) -> Vec<ContentPart> {
    images
        .into_iter()
        .enumerate()
        .map(|(index, data)| image::from_base64(&data, &format!("{path}[{index}]")))
        .collect()
}

fn message(given: &Value, path: &str) -> Result<Message, Error> {
    let turn: Turn = fields_at(given, path)?;
    let role = match turn.role.to_lowercase().as_str() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => {
            let param = format!("{path}.role");
            let message = format!("{param} is system, user, assistant or tool, not `{other}`");
            return Err(Error::invalid(param, message));
        }
    };
    let mut reasoning = thought::of_turn(given, path)?;
    let mut content = images(turn.images.unwrap_or_default(), &format!("{path}.images"));
    match turn.content {
        None => {}
        Some(Content::Text(text)) => content.push(ContentPart::Text(text)),
        Some(Content::Parts(parts)) => {
            let path = format!("{path}.content");
            let mut read = parts::read_all(&parts, &path, role == Role::Assistant)?;
            content.append(&mut read.parts);
            // Some clients replay a thought in both places.
            if !reasoning.contains(&read.reasoning) {
                reasoning.push_str(&read.reasoning);
            }
        }
    }
    let mut tool_calls = Vec::new();
    for (index, call) in turn.tool_calls.unwrap_or_default().into_iter().enumerate() {
        tool_calls.push(read_call(call, &format!("{path}.tool_calls[{index}]"))?);
    }
    Ok(Message {
        role,
        content,
        reasoning: (!reasoning.is_empty()).then_some(reasoning),
        tool_calls,
        tool_call_id: turn.tool_call_id.filter(|id| !id.is_empty()),
        name: turn.tool_name.filter(|name| !name.is_empty()),
    })
}

fn read_call(call: Call, path: &str) -> Result<ToolCall, Error> {
    let arguments = match call.function.arguments {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(arguments @ Value::Object(_)) => arguments.to_string(),
        Some(Value::String(text)) if text.trim().is_empty() => "{}".to_owned(),
        Some(Value::String(text)) => text,
        Some(_) => {
            let param = format!("{path}.function.arguments");
            let message = format!("{param} must be an object");
            return Err(Error::invalid(param, message));
        }
    };
    Ok(ToolCall {
        id: call.id.unwrap_or_default(),
        name: call.function.name,
        arguments,
    })
}

#[cfg(test)]
mod tests {
    use macmlx_inference::ImageSource;
    use serde_json::json;

    use super::*;

    fn read(turns: &Value) -> Result<Vec<Message>, Error> {
        conversation(turns.as_array().unwrap())
    }

    #[test]
    fn results_find_their_calls_by_id_by_name_and_by_order() {
        let calls = json!({"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
            {"function": {"name": "a", "arguments": {"x": 1}}},
            {"id": "b7", "type": "function", "function": {"index": 1, "name": "b", "arguments": "{}"}},
            {"function": {"name": "c"}},
        ]});
        let messages = read(&json!([
            calls,
            {"role": "tool", "tool_name": "c", "content": "3"},
            {"role": "tool", "tool_call_id": "b7", "content": "2"},
            {"role": "tool", "content": "1"},
            {"role": "Assistant", "tool_calls": [{"function": {"name": "a", "arguments": null}}]},
            {"role": "tool", "name": "a", "content": "4"},
        ]))
        .unwrap();
        assert_eq!(messages[0].reasoning.as_deref(), Some("hm"));
        assert_eq!(messages[0].tool_calls[0].arguments, r#"{"x":1}"#);
        let answered: Vec<_> = messages
            .iter()
            .filter(|message| message.role == Role::Tool)
            .map(|message| {
                (
                    message.tool_call_id.as_deref().unwrap(),
                    message.name.as_deref().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            answered,
            [
                ("call00002", "c"),
                ("b7", "b"),
                ("call00000", "a"),
                ("call00003", "a")
            ]
        );
    }

    #[test]
    fn text_and_pieces_of_text_say_the_same() {
        let one = read(&json!([{"role": "user", "content": "hi"}])).unwrap();
        let pieces =
            read(&json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])).unwrap();
        assert_eq!(one, pieces);
        let with_nothing = read(&json!([
            {"role": "user", "content": "hi", "images": [], "tool_calls": null, "thinking": ""}
        ]))
        .unwrap();
        assert_eq!(one, with_nothing);
    }

    #[test]
    fn images_come_first_and_know_their_place() {
        let messages = read(&json!([
            {"role": "user", "content": "see", "images": ["iVBORw0", "data:image/bmp;base64,Qk0="]}
        ]))
        .unwrap();
        let ContentPart::Image(png) = &messages[0].content[0] else {
            panic!("{messages:?}");
        };
        assert_eq!(png.param, "messages[0].images[0]");
        let ContentPart::Image(bmp) = &messages[0].content[1] else {
            panic!("{messages:?}");
        };
        assert_eq!(
            bmp.source,
            ImageSource::Inline {
                media_type: "image/bmp".into(),
                data: "Qk0=".into()
            }
        );
    }

    #[test]
    fn wrong_turns_are_named() {
        for (turns, param) in [
            (json!([{"role": "robot"}]), "messages[0].role"),
            (json!([{"content": "x"}]), "messages[0].role"),
            (json!(["hi"]), "messages[0]"),
            (
                json!([{"role": "user", "content": 1}]),
                "messages[0].content",
            ),
            (
                json!([{"role": "user", "content": [{"type": "image_url"}]}]),
                "messages[0].content[0].image_url.url",
            ),
            (
                json!([{"role": "user", "images": [1]}]),
                "messages[0].images[0]",
            ),
            (
                json!([{"role": "assistant", "tool_calls": [{"function": {}}]}]),
                "messages[0].tool_calls[0].function.name",
            ),
            (
                json!([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 1}}]}]),
                "messages[0].tool_calls[0].function.arguments",
            ),
        ] {
            let error = read(&turns).unwrap_err();
            let named = match &error {
                Error::Invalid { param, .. } => param.as_deref(),
                Error::Unsupported { param, .. } => Some(param.as_str()),
                _ => None,
            };
            assert_eq!(named, Some(param), "{turns}: {error}");
        }
    }
}
