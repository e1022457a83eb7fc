//! What the page hears of an answer, in messages that are JSON.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::response::Parts;
use serde::Serialize;

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Message {
    Head {
        status: u16,
        headers: Vec<(String, String)>,
    },
    /// A piece of the body that is text.
    Chunk { text: String },
    /// A piece of the body that is not.
    Bytes { base64: String },
    /// All has been sent.
    End,
    /// The answer broke off.
    Failed { message: String },
}

impl Message {
    pub(super) fn head(head: &Parts) -> Self {
        let headers = head
            .headers
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                (name.as_str().to_owned(), value)
            })
            .collect();
        Self::Head {
            status: head.status.as_u16(),
            headers,
        }
    }

    fn bytes(bytes: &[u8]) -> Self {
        Self::Bytes {
            base64: BASE64_STANDARD.encode(bytes),
        }
    }
}

/// Makes text of pieces that may end within a character.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// The start of a character whose end is still to come: three bytes at most.
    held: Vec<u8>,
}

impl Text {
    /// What can be passed on by now. Pieces that are not UTF-8 pass as they are.
    pub(super) fn push(&mut self, piece: &[u8]) -> Option<Message> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        if let Err(error) = std::str::from_utf8(&bytes) {
            if error.error_len().is_some() {
                return Some(Message::bytes(&bytes));
            }
            self.held = bytes.split_off(error.valid_up_to());
        }
        let text = String::from_utf8(bytes)
            .ok()
            .filter(|text| !text.is_empty())?;
        Some(Message::Chunk { text })
    }

    /// What was held when the body ended.
    pub(super) fn finish(self) -> Option<Message> {
        (!self.held.is_empty()).then(|| Message::bytes(&self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that the page puts together again, and how many messages were not text.
    fn joined<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, usize) {
        let mut text = Text::default();
        let mut messages: Vec<_> = pieces
            .into_iter()
            .filter_map(|piece| text.push(piece))
            .collect();
        messages.extend(text.finish());
        let mut bytes = Vec::new();
        let mut others = 0;
        for message in messages {
            match message {
                Message::Chunk { text } => bytes.extend_from_slice(text.as_bytes()),
                Message::Bytes { base64 } => {
                    others += 1;
                    bytes.extend(BASE64_STANDARD.decode(base64).unwrap());
                }
                other => panic!("{other:?}"),
            }
        }
        (bytes, others)
    }

    #[test]
    fn text_stays_text_at_every_split() {
        let whole = "aé漢🦀\n".as_bytes();
        assert_eq!(joined([whole]), (whole.to_vec(), 0));
        assert_eq!(joined(whole.chunks(1)), (whole.to_vec(), 0));
        for first in 0..=whole.len() {
            for second in first..=whole.len() {
                let pieces = [&whole[..first], &whole[first..second], &whole[second..]];
                assert_eq!(joined(pieces), (whole.to_vec(), 0), "{first} {second}");
            }
        }
    }

    #[test]
    fn other_bytes_arrive_unchanged() {
        let whole = b"\x89PNG\xff\xfe\xc3";
        for split in 0..=whole.len() {
            let (bytes, others) = joined([&whole[..split], &whole[split..]]);
            assert_eq!(bytes, whole, "{split}");
            assert!(others > 0, "{split}");
        }
        // A character that never ends.
        assert_eq!(joined([&b"ab\xe6\xbc"[..]]), (b"ab\xe6\xbc".to_vec(), 1));
    }

    #[test]
    fn messages_are_what_the_page_expects() {
        let json = |message| serde_json::to_value::<Message>(message).unwrap();
        assert_eq!(
            json(Message::Chunk { text: "a".into() }),
            serde_json::json!({ "type": "chunk", "text": "a" })
        );
        assert_eq!(json(Message::End), serde_json::json!({ "type": "end" }));
        assert_eq!(
            json(Message::bytes(b"\xff")),
            serde_json::json!({ "type": "bytes", "base64": "/w==" })
        );
        let head = http::Response::builder()
            .status(404)
            .header("a", "b")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        assert_eq!(
            json(Message::head(&head)),
            serde_json::json!({ "type": "head", "status": 404, "headers": [["a", "b"]] })
        );
    }
}
