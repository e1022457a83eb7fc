//! What a tool gave, as text for the model.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Text of a result and whether the tool says it failed. At most `limit_bytes` of it, and a note if
/// there was more.
pub(crate) fn render(result: CallToolResult, limit_bytes: usize) -> (String, bool) {
    let is_error = result.is_error == Some(true);
    let blocks: Vec<String> = result.content.into_iter().map(block).collect();
    let text = if blocks.is_empty() {
        match result.structured_content {
            Some(structured) => structured.to_string(),
            None => "The tool returned nothing.".into(),
        }
    } else {
        blocks.join("\n")
    };
    (cut_to(text, limit_bytes), is_error)
}

fn block(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => format!(
            "[image {}, {}]",
            image.mime_type,
            size(base64_bytes(&image.data))
        ),
        ContentBlock::Audio(audio) => format!(
            "[audio {}, {}]",
            audio.mime_type,
            size(base64_bytes(&audio.data))
        ),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => format!(
                "[resource {uri}, {}, {}]",
                mime_type.as_deref().unwrap_or("application/octet-stream"),
                size(base64_bytes(&blob))
            ),
            _ => "[resource of an unknown kind]".into(),
        },
        ContentBlock::ResourceLink(link) => match link.description {
            Some(description) => format!("[resource {}: {description}]", link.uri),
            None => format!("[resource {}: {}]", link.uri, link.name),
        },
        _ => "[content of an unknown kind]".into(),
    }
}

/// Bytes that base64 text stands for.
fn base64_bytes(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn cut_to(mut text: String, limit_bytes: usize) -> String {
    if text.len() <= limit_bytes {
        return text;
    }
    let whole = text.len();
    let mut end = limit_bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    let (shown, whole) = (size(end), size(whole));
    format!(
        "{text}\n[cut here: this is the first {shown} of a result of {whole}; ask for less at a time]"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rendered(result: Value) -> (String, bool) {
        render(serde_json::from_value(result).unwrap(), 1024)
    }

    #[test]
    fn text_is_joined_and_the_rest_described() {
        let (text, is_error) = rendered(json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "A".repeat(16_000)},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAA="},
            {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
            {"type": "resource",
                "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///b", "name": "b"},
            {"type": "text", "text": "zwei 日本"},
        ]}));
        assert!(!is_error);
        assert_eq!(
            text,
            "one\n[image image/png, 12 kB]\n[audio audio/wav, 2 bytes]\n\
             [resource file:///a.txt]\ninside\n\
             [resource file:///a.pdf, application/pdf, 3 bytes]\n[resource file:///b: b]\nzwei 日本"
        );
    }

    #[test]
    fn structure_stands_in_for_missing_text() {
        let structured = json!({"content": [], "structuredContent": {"t": [1, 2]}});
        assert_eq!(rendered(structured).0, r#"{"t":[1,2]}"#);
        let both = json!({"content": [{"type": "text", "text": "said"}],
            "structuredContent": {"t": 1}});
        assert_eq!(rendered(both).0, "said");
        assert_eq!(
            rendered(json!({"content": []})).0,
            "The tool returned nothing."
        );
        let failed = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        assert_eq!(rendered(failed), ("no".into(), true));
    }

    #[test]
    fn long_results_are_cut_and_say_so() {
        let (text, _) = rendered(json!({"content": [{"type": "text", "text": "日".repeat(1000)}]}));
        let (kept, note) = text.split_once('\n').unwrap();
        assert_eq!(kept.len(), 1023);
        assert!(note.contains("first 1 kB of a result of 3 kB"), "{note}");
    }
}
