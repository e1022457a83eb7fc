//! Images, which clients name by an address or send as base64.

use macmlx_inference::{ContentPart, Image, ImageSource};
use serde_json::Value;

/// The image at `url`, which stands at `path` of the request. `data:image/png;base64,…` is in the
/// request, anything else is elsewhere.
pub(crate) fn at_url(url: &str, path: &str) -> ContentPart {
    part(
        inline_url(url).unwrap_or_else(|| ImageSource::Url(url.to_owned())),
        path,
    )
}

/// Base64 as Ollama's clients send it, without a type: the first bytes tell it, unless the client
/// sent a whole data URL.
pub(crate) fn from_base64(data: &str, path: &str) -> ContentPart {
    let source = inline_url(data).unwrap_or_else(|| inline(media_type(data), data));
    part(source, path)
}

/// The image of an `image_url`, `input_image` or `image` part, in whichever field it is. `None`: in
/// no field that is known for it.
pub(crate) fn from_part(value: &Value, path: &str) -> Option<ContentPart> {
    let url = match value.get("image_url") {
        Some(Value::Object(image)) => image.get("url"),
        url => url,
    };
    let url = url.or_else(|| value.get("url")).and_then(Value::as_str);
    if let Some(url) = url {
        return Some(at_url(url, path));
    }
    if let Some(data) = value.get("image").and_then(Value::as_str) {
        let is_address = data.contains("://");
        return Some(if is_address {
            at_url(data, path)
        } else {
            from_base64(data, path)
        });
    }
    let source = value.get("source")?;
    let field = |name: &str| source.get(name).and_then(Value::as_str);
    match field("type") {
        Some("base64") => Some(part(inline(field("media_type")?, field("data")?), path)),
        Some("url") => Some(at_url(field("url")?, path)),
        _ => None,
    }
}

fn part(source: ImageSource, path: &str) -> ContentPart {
    ContentPart::Image(Image {
        source,
        param: path.to_owned(),
    })
}

fn inline(media_type: &str, data: &str) -> ImageSource {
    ImageSource::Inline {
        media_type: media_type.to_owned(),
        data: data.to_owned(),
    }
}

fn inline_url(url: &str) -> Option<ImageSource> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(inline(media_type, data))
}

fn media_type(data: &str) -> &'static str {
    [
        ("iVBOR", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("UklGR", "image/webp"),
    ]
    .iter()
    .find(|(start, _)| data.starts_with(start))
    .map_or("application/octet-stream", |(_, media_type)| *media_type)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_spelling_of_an_image_is_the_same_image() {
        let expected = Some(at_url("data:image/png;base64,iVBORw==", "p"));
        for part in [
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}),
            json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="}),
            json!({"type": "image", "image": "iVBORw=="}),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png",
                "data": "iVBORw=="}}),
        ] {
            assert_eq!(from_part(&part, "p"), expected, "{part}");
        }
        let elsewhere = Some(at_url("http://a/b.png", "p"));
        for part in [
            json!({"type": "image", "source": {"type": "url", "url": "http://a/b.png"}}),
            json!({"type": "image", "image": "http://a/b.png"}),
            json!({"type": "image", "url": "http://a/b.png"}),
        ] {
            assert_eq!(from_part(&part, "p"), elsewhere, "{part}");
        }
        assert_eq!(from_part(&json!({"image_url": {}}), "p"), None);
    }

    #[test]
    fn the_first_bytes_tell_the_type() {
        let ContentPart::Image(image) = from_base64("/9j/4AAQ", "p") else {
            panic!("an image was sent");
        };
        assert_eq!(image.source, inline("image/jpeg", "/9j/4AAQ"));
    }
}
