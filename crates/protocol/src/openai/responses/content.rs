//! Content parts of messages and of tool results.

use macmlx_inference::ContentPart;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Error,
    parts::{self, Content as Said},
};

/// A string or parts, wherever the API takes both.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a string or an array of content parts")]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Value>),
}

impl Content {
    /// The parts in neutral terms. Only an assistant `thinks`.
    pub(super) fn read(self, path: &str, thinks: bool) -> Result<Said, Error> {
        match self {
            Self::Text(text) => Ok(Said {
                parts: vec![ContentPart::Text(text)],
                ..Said::default()
            }),
            Self::Parts(parts) => parts::read_all(&parts, path, thinks),
        }
    }

    /// Does the same as [`Self::read`], for results of tools, whose parts are lines of their own.
    pub(super) fn read_lines(self, path: &str) -> Result<Vec<ContentPart>, Error> {
        let mut parts = self.read(path, false)?.parts;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use macmlx_inference::ImageSource;

    use super::*;
    use crate::json::fields_at;

    fn read(content: &Value) -> Result<Vec<ContentPart>, Error> {
        let content: Content = fields_at(content, "content")?;
        Ok(content.read("content", true)?.parts)
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
            (json!({}), "content[0].type"),
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
