//! Conversation turns as clients of Ollama send and replay them.

use macmlx_inference::{ContentPart, Image, ImageSource, Message, Role, ToolCall};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{Error, json::fields_at};

/// One turn.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::Message)]
pub(super) struct Turn {
    /// `system`, `user`, `assistant` or `tool`.
    role: String,
    #[schema(value_type = Option<String>)]
    content: Option<Content>,
    /// What the assistant thought before it said that.
    thinking: Option<String>,
    /// Base64.
    images: Option<Vec<String>>,
    tool_calls: Option<Vec<Call>>,
    /// The tool whose result this is.
    #[serde(alias = "name")]
    tool_name: Option<String>,
    tool_call_id: Option<String>,
}

/// Text, or text in pieces as clients of other APIs write it.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a string")]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    r#type: String,
    text: Option<String>,
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

/// A call that no turn has answered yet.
struct OpenCall {
    id: String,
    name: String,
}

/// Reads `messages`. Ollama's own clients neither keep nor send the ids of calls, so calls without
/// get one by their place, and results without answer the first open call of their tool.
pub(super) fn conversation(turns: &[Value]) -> Result<Vec<Message>, Error> {
    let mut messages = Vec::with_capacity(turns.len());
    let mut open = Vec::new();
    let mut calls = 0;
    for (index, turn) in turns.iter().enumerate() {
        let path = format!("messages[{index}]");
        let turn: Turn = fields_at(turn, &path)?;
        let mut message = message(turn, &path, &mut calls)?;
        match message.role {
            Role::Tool => answer_call(&mut message, &mut open, &path)?,
            Role::Assistant => open.extend(message.tool_calls.iter().map(|call| OpenCall {
                id: call.id.clone(),
                name: call.name.clone(),
            })),
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
        .map(|(index, data)| {
            let (media_type, data) = media(&data);
            ContentPart::Image(Image {
                source: ImageSource::Inline {
                    media_type: media_type.to_owned(),
                    data: data.to_owned(),
                },
                param: format!("{path}[{index}]"),
            })
        })
        .collect()
}

/// Ollama names no type: the first bytes tell it, unless the client sent a whole data URL.
fn media(data: &str) -> (&str, &str) {
    if let Some((media_type, data)) = data
        .strip_prefix("data:")
        .and_then(|url| url.split_once(";base64,"))
    {
        return (media_type, data);
    }
    let media_type = [
        ("iVBOR", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("UklGR", "image/webp"),
    ]
    .iter()
    .find(|(start, _)| data.starts_with(start))
    .map_or("application/octet-stream", |(_, media_type)| *media_type);
    (media_type, data)
}

fn message(turn: Turn, path: &str, calls: &mut usize) -> Result<Message, Error> {
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
    let mut content = images(turn.images.unwrap_or_default(), &format!("{path}.images"));
    match turn.content {
        None => {}
        Some(Content::Text(text)) => content.push(ContentPart::Text(text)),
        Some(Content::Parts(parts)) => {
            for (index, part) in parts.into_iter().enumerate() {
                let Some(text) = part.text.filter(|_| part.r#type == "text") else {
                    return Err(Error::unsupported(
                        format!("{path}.content[{index}]"),
                        "content is text; images have a field of their own",
                    ));
                };
                content.push(ContentPart::Text(text));
            }
        }
    }
    let mut tool_calls = Vec::new();
    for (index, call) in turn.tool_calls.unwrap_or_default().into_iter().enumerate() {
        tool_calls.push(read_call(
            call,
            &format!("{path}.tool_calls[{index}]"),
            *calls,
        )?);
        *calls += 1;
    }
    Ok(Message {
        role,
        content,
        reasoning: turn.thinking.filter(|text| !text.is_empty()),
        tool_calls,
        tool_call_id: turn.tool_call_id.filter(|id| !id.is_empty()),
        name: turn.tool_name.filter(|name| !name.is_empty()),
    })
}

/// `place` counts the calls of the whole conversation.
fn read_call(call: Call, path: &str, place: usize) -> Result<ToolCall, Error> {
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
        // Nine letters and digits: the strictest templates take no other.
        id: call
            .id
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| format!("call{place:05}")),
        name: call.function.name,
        arguments,
    })
}

/// Each result answers a call made before it, once.
fn answer_call(message: &mut Message, open: &mut Vec<OpenCall>, path: &str) -> Result<(), Error> {
    let (field, found) = match (&message.tool_call_id, &message.name) {
        (Some(id), _) => ("tool_call_id", open.iter().position(|call| call.id == *id)),
        (None, Some(name)) => ("tool_name", open.iter().position(|call| call.name == *name)),
        (None, None) => ("role", (!open.is_empty()).then_some(0)),
    };
    let Some(found) = found else {
        let param = format!("{path}.{field}");
        let reason = format!(
            "{param}: no earlier assistant turn made a call that this answers and that is still unanswered"
        );
        return Err(Error::invalid(param, reason));
    };
    let call = open.remove(found);
    message.tool_call_id = Some(call.id);
    message.name.get_or_insert(call.name);
    Ok(())
}

#[cfg(test)]
mod tests {
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
        assert_eq!(media("/9j/4AAQ").0, "image/jpeg");
    }

    #[test]
    fn wrong_turns_are_named() {
        let call =
            json!({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]});
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
                "messages[0].content[0]",
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
            (
                json!([{"role": "tool", "content": "x"}]),
                "messages[0].role",
            ),
            (
                json!([call, {"role": "tool", "tool_call_id": "d"}]),
                "messages[1].tool_call_id",
            ),
            (
                json!([call, {"role": "tool", "tool_name": "g"}]),
                "messages[1].tool_name",
            ),
            (
                json!([call, {"role": "tool", "tool_call_id": "c"}, {"role": "tool", "tool_call_id": "c"}]),
                "messages[2].tool_call_id",
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
