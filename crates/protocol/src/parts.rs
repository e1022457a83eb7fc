//! Content parts as clients of chat, responses and Ollama write them, and as they carry them over
//! from each other's APIs.

use macmlx_inference::ContentPart;
use serde_json::Value;

use crate::{Error, image, thought};

/// What one part says.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    Content(ContentPart),
    /// A thought of the model; empty where only another server can read it.
    Reasoning(String),
}

/// A turn's content.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Content {
    pub(crate) parts: Vec<ContentPart>,
    pub(crate) reasoning: String,
}

/// Reads all parts of a turn. Only an assistant has thoughts; what looks like one in another's turn
/// is text.
pub(crate) fn read_all(parts: &[Value], path: &str, thinks: bool) -> Result<Content, Error> {
    let mut content = Content::default();
    for (index, part) in parts.iter().enumerate() {
        match read(part, &format!("{path}[{index}]"))? {
            Part::Content(part) => content.parts.push(part),
            Part::Reasoning(text) if thinks => content.reasoning.push_str(&text),
            Part::Reasoning(text) => content.parts.push(ContentPart::Text(text)),
        }
    }
    Ok(content)
}

/// Reads a part found at `path`. If its type is unknown, its text is kept; a part without text is
/// refused.
pub(crate) fn read(part: &Value, path: &str) -> Result<Part, Error> {
    let text_of = |field: &str| text_of(part, field, path).map(Part::Content);
    match part {
        Value::String(text) => return Ok(Part::Content(ContentPart::Text(text.clone()))),
        Value::Object(_) => {}
        _ => {
            let message = format!("{path} must be a content part: a string or an object");
            return Err(Error::invalid(path, message));
        }
    }
    let kind = match part.get("type") {
        None | Some(Value::Null) => "",
        Some(Value::String(kind)) => kind,
        Some(_) => return Err(wrong(&format!("{path}.type"), "must be a string")),
    };
    match kind {
        "text" | "input_text" | "output_text" => text_of("text"),
        "refusal" => text_of("refusal"),
        "thinking"
        | "redacted_thinking"
        | "reasoning"
        | "reasoning_text"
        | "summary_text"
        | "reasoning.text"
        | "reasoning.summary"
        | "reasoning.encrypted" => {
            let text = thought::text(Some(part), path)?;
            if text.is_empty() && matches!(kind, "thinking" | "reasoning") && has_nothing(part) {
                let field = if kind == "thinking" {
                    "thinking"
                } else {
                    "text"
                };
                return Err(wrong(&format!("{path}.{field}"), "must be a string"));
            }
            Ok(Part::Reasoning(text))
        }
        "image_url" | "input_image" | "image" => match image::from_part(part, path) {
            Some(image) => Ok(Part::Content(image)),
            None if part.get("file_id").is_some_and(Value::is_string) => Err(Error::unsupported(
                format!("{path}.file_id"),
                "there is no store of files; send a data URL",
            )),
            None => {
                let field = match kind {
                    "image_url" => "image_url.url",
                    "input_image" => "image_url",
                    _ => "image",
                };
                Err(wrong(&format!("{path}.{field}"), "must be a string"))
            }
        },
        "input_audio" | "audio_url" | "audio" => {
            Err(Error::unsupported(path, "the model does not hear audio"))
        }
        "file" | "input_file" | "video_url" | "video" => {
            Err(Error::unsupported(path, "only text and images are read"))
        }
        "tool_use" | "tool_call" | "tool-call" => Err(Error::unsupported(
            path,
            "a call is no part of the content here; send it as this API has calls",
        )),
        "tool_result" | "tool-result" => Err(Error::unsupported(
            path,
            "a result is no part of the content here; send it as this API has results",
        )),
        other => match thought::text(Some(part), path)? {
            text if !text.is_empty() => Ok(Part::Content(ContentPart::Text(text))),
            _ if other.is_empty() => Err(wrong(&format!("{path}.type"), "must be a string")),
            _ => Err(Error::unsupported(
                path,
                format!("content parts of type `{other}` are not known, and it has no `text`"),
            )),
        },
    }
}

/// The text of a field, which some APIs wrap into an object.
fn text_of(part: &Value, field: &str, path: &str) -> Result<ContentPart, Error> {
    let path = format!("{path}.{field}");
    match part.get(field) {
        None | Some(Value::Null) => Err(wrong(&path, "must be a string")),
        Some(Value::Object(inner)) if !inner.contains_key("value") => {
            Err(wrong(&path, "must be a string"))
        }
        text => thought::text(text, &path).map(ContentPart::Text),
    }
}

/// Whether a thought has no field at all that could hold one.
fn has_nothing(part: &Value) -> bool {
    let fields = part.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| *name != "type" && !value.is_null())
        .count()
        == 0
}

fn wrong(param: &str, what: &str) -> Error {
    Error::invalid(param, format!("{param} {what}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Part {
        Part::Content(ContentPart::Text(text.into()))
    }

    #[test]
    fn text_has_many_shapes() {
        for part in [
            json!("a"),
            json!({"type": "text", "text": "a"}),
            json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}),
            json!({"type": "input_text", "text": "a"}),
            json!({"type": "output_text", "text": "a", "annotations": [], "logprobs": []}),
            json!({"type": "text", "text": {"value": "a", "annotations": []}}),
            json!({"type": "refusal", "refusal": "a"}),
            json!({"text": "a"}),
            json!({"type": "hologram", "text": "a"}),
            json!({"type": "mcp_result", "content": [{"type": "text", "text": "a"}]}),
        ] {
            assert_eq!(read(&part, "p"), Ok(text("a")), "{part}");
        }
    }

    #[test]
    fn thoughts_have_many_shapes() {
        for part in [
            json!({"type": "thinking", "thinking": "a", "signature": "c2ln"}),
            json!({"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}),
            json!({"type": "reasoning", "text": "a"}),
            json!({"type": "reasoning", "reasoning": "a"}),
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}]}),
            json!({"type": "reasoning_text", "text": "a"}),
            json!({"type": "reasoning.text", "text": "a"}),
        ] {
            assert_eq!(read(&part, "p"), Ok(Part::Reasoning("a".into())), "{part}");
        }
        for sealed in [
            json!({"type": "redacted_thinking", "data": "x"}),
            json!({"type": "reasoning.encrypted", "data": "x"}),
            json!({"type": "thinking", "thinking": "", "signature": "c2ln"}),
        ] {
            assert_eq!(read(&sealed, "p"), Ok(Part::Reasoning(String::new())));
        }
        let parts = [json!({"type": "thinking", "thinking": "a"}), json!("b")];
        let of_user = read_all(&parts, "p", false).unwrap();
        let texts = ["a", "b"].map(|text| ContentPart::Text(text.into()));
        assert_eq!(of_user.parts, texts);
        let of_assistant = read_all(&parts, "p", true).unwrap();
        assert_eq!(of_assistant.reasoning, "a");
        assert_eq!(of_assistant.parts, texts[1..]);
    }

    #[test]
    fn what_says_nothing_that_could_be_read_is_named() {
        for (part, param) in [
            (json!(5), "p"),
            (json!({}), "p.type"),
            (json!({"type": 5}), "p.type"),
            (json!({"type": "text"}), "p.text"),
            (json!({"type": "text", "text": 5}), "p.text"),
            (json!({"type": "text", "text": {}}), "p.text"),
            (json!({"type": "refusal"}), "p.refusal"),
            (json!({"type": "thinking"}), "p.thinking"),
            (
                json!({"type": "image_url", "image_url": {}}),
                "p.image_url.url",
            ),
            (json!({"type": "input_image"}), "p.image_url"),
            (json!({"type": "input_image", "file_id": "f"}), "p.file_id"),
            (json!({"type": "input_audio", "input_audio": {}}), "p"),
            (json!({"type": "file", "file": {}}), "p"),
            (json!({"type": "hologram"}), "p"),
            (json!({"type": "tool_use", "id": "t", "name": "f"}), "p"),
            (json!({"type": "tool_result", "content": "x"}), "p"),
        ] {
            let named = match read(&part, "p").unwrap_err() {
                Error::Invalid { param, .. } => param.unwrap(),
                Error::Unsupported { param, .. } => param,
                other => panic!("{other:?}"),
            };
            assert_eq!(named, param, "{part}");
        }
    }
}
