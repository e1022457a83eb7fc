//! Content parts of messages and of tool results.

use macmlx_inference::ContentPart;
use serde::Deserialize;
use serde_json::Value;

use super::super::image;
use crate::{Error, json::fields_at};

/// A string or parts, wherever the API takes both.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a string or an array of content parts")]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Value>),
}

impl Content {
    /// The parts in neutral terms.
    pub(super) fn read(self, path: &str) -> Result<Vec<ContentPart>, Error> {
        match self {
            Self::Text(text) => Ok(vec![ContentPart::Text(text)]),
            Self::Parts(parts) => parts
                .iter()
                .enumerate()
                .map(|(index, part)| read_part(part, &format!("{path}[{index}]")))
                .collect(),
        }
    }

    /// As [`Self::read`] for results of tools, whose parts are lines of their own.
    pub(super) fn read_lines(self, path: &str) -> Result<Vec<ContentPart>, Error> {
        let mut parts = self.read(path)?;
        let last = parts.len().saturating_sub(1);
        for part in &mut parts[..last] {
            if let ContentPart::Text(text) = part
                && !text.ends_with('\n')
            {
                text.push('\n');
            }
        }
        Ok(parts)
    }
}

#[derive(Debug, Deserialize)]
struct Part {
    r#type: Option<String>,
    text: Option<String>,
    refusal: Option<String>,
    image_url: Option<Value>,
    file_id: Option<String>,
}

fn read_part(part: &Value, path: &str) -> Result<ContentPart, Error> {
    if let Value::String(text) = part {
        return Ok(ContentPart::Text(text.clone()));
    }
    let part: Part = fields_at(part, path)?;
    let missing = |field: &str| {
        let param = format!("{path}.{field}");
        let message = format!("{param} is missing");
        Error::invalid(param, message)
    };
    match part.r#type.as_deref() {
        Some("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text") => {
            part.text.map(ContentPart::Text).ok_or(missing("text"))
        }
        Some("refusal") => part
            .refusal
            .map(ContentPart::Text)
            .ok_or(missing("refusal")),
        Some("input_image" | "image_url") => {
            // Chat's spelling wraps the address in an object.
            let url = match &part.image_url {
                Some(Value::Object(image)) => image.get("url").and_then(Value::as_str),
                url => url.as_ref().and_then(Value::as_str),
            };
            match url {
                Some(url) => Ok(image::part(url, path)),
                None if part.file_id.is_some() => Err(Error::unsupported(
                    format!("{path}.file_id"),
                    "there is no store of files; send a data URL",
                )),
                None => Err(missing("image_url")),
            }
        }
        Some("input_audio") => Err(Error::unsupported(path, "the model does not hear audio")),
        Some("input_file") => Err(Error::unsupported(path, "only text and images are read")),
        Some(other) => Err(Error::unsupported(
            path,
            format!("content parts of type `{other}` are not known"),
        )),
        None => Err(missing("type")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use macmlx_inference::ImageSource;

    use super::*;

    fn read(content: &Value) -> Result<Vec<ContentPart>, Error> {
        fields_at::<Content>(content, "content")?.read("content")
    }

    #[test]
    fn text_has_many_names() {
        let parts = json!(["a", {"type": "input_text", "text": "b"},
            {"type": "output_text", "text": "c", "annotations": [], "logprobs": []},
            {"type": "refusal", "refusal": "d"}]);
        let texts: Vec<_> = ["a", "b", "c", "d"]
            .map(|text| ContentPart::Text(text.into()))
            .into();
        assert_eq!(read(&parts).unwrap(), texts);
        assert_eq!(read(&json!("a")).unwrap(), texts[..1]);
    }

    #[test]
    fn results_are_lines() {
        let parts = json!([{"type": "input_text", "text": "Output:"},
            {"type": "input_text", "text": "x\n"}, {"type": "input_text", "text": "y"}]);
        let lines = fields_at::<Content>(&parts, "output")
            .unwrap()
            .read_lines("output")
            .unwrap();
        let texts: Vec<_> = ["Output:\n", "x\n", "y"]
            .map(|text| ContentPart::Text(text.into()))
            .into();
        assert_eq!(lines, texts);
    }

    #[test]
    fn images_say_where_they_stand() {
        let parts = json!([
            {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "high"},
            {"type": "input_image", "image_url": {"url": "https://example.org/a.png"}},
        ]);
        let images: Vec<_> = read(&parts)
            .unwrap()
            .into_iter()
            .map(|part| match part {
                ContentPart::Image(image) => (image.param, image.source),
                ContentPart::Text(text) => panic!("{text}"),
            })
            .collect();
        let inline = ImageSource::Inline {
            media_type: "image/png".into(),
            data: "AA==".into(),
        };
        let elsewhere = ImageSource::Url("https://example.org/a.png".into());
        assert_eq!(
            images,
            [
                ("content[0]".into(), inline),
                ("content[1]".into(), elsewhere)
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (part, param) in [
            (json!({"type": "input_text"}), "content[0].text"),
            (json!({"type": "input_text", "text": 1}), "content[0].text"),
            (json!({"text": "a"}), "content[0].type"),
            (json!({"type": "input_image"}), "content[0].image_url"),
            (
                json!({"type": "input_image", "file_id": "f"}),
                "content[0].file_id",
            ),
            (json!({"type": "input_file", "file_id": "f"}), "content[0]"),
            (json!({"type": "input_audio"}), "content[0]"),
            (json!({"type": "hologram"}), "content[0]"),
            (json!(1), "content[0]"),
        ] {
            let named = match read(&json!([part])).unwrap_err() {
                Error::Invalid { param, .. } => param.unwrap(),
                Error::Unsupported { param, .. } => param,
                other => panic!("{other:?}"),
            };
            assert_eq!(named, param, "{part}");
        }
        assert!(read(&json!(5)).is_err());
    }
}
