//! How a tokenizer's decoder turns the spelling of a token in the vocabulary into bytes.
//!
//! Three families exist in practice: byte-level BPE, where each character of the spelling is one
//! byte; `SentencePiece`, where `▁` is a space and `<0xNN>` one byte; and, of encoders, `WordPiece`,
//! where a token begins a word unless it is marked.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::Value;
use tokenizers::DecoderWrapper;

/// The steps of a decoder that change single tokens, and what it does to the start of a text.
#[derive(Debug, Default)]
pub(super) struct Decoding {
    steps: Vec<Step>,
    leading_spaces: usize,
}

#[derive(Debug)]
enum Step {
    ByteLevel,
    Replace { from: String, to: String },
    ByteFallback,
    WordPiece { prefix: String, cleans_up: bool },
}

/// Texts before which a decoder that cleans up removes the space.
const ATTACHED: [&str; 9] = [".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"];

impl Decoding {
    /// Reads a decoder. Decoders whose effect on a token depends on its neighbours (`CTC`,
    /// `BPEDecoder`) belong to no model of text that is in use, and are refused by name.
    pub(super) fn of(decoder: Option<&DecoderWrapper>) -> Result<Self, String> {
        let mut decoding = Self::default();
        if let Some(decoder) = decoder {
            let decoder = serde_json::to_value(decoder).map_err(|error| error.to_string())?;
            decoding.read(&decoder)?;
        }
        Ok(decoding)
    }

    fn read(&mut self, decoder: &Value) -> Result<(), String> {
        let kind = decoder["type"].as_str().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match kind {
            "Sequence" => {
                for step in decoder["decoders"].as_array().into_iter().flatten() {
                    self.read(step)?;
                }
            }
            "ByteLevel" => self.steps.push(Step::ByteLevel),
            "ByteFallback" => self.steps.push(Step::ByteFallback),
            "Replace" if decoder["pattern"]["String"].is_string() => {
                self.steps.push(Step::Replace {
                    from: text(&decoder["pattern"]["String"]),
                    to: text(&decoder["content"]),
                });
            }
            "Metaspace" => {
                self.steps.push(Step::Replace {
                    from: text(&decoder["replacement"]),
                    to: " ".into(),
                });
                if decoder["prepend_scheme"] != "never" {
                    self.leading_spaces = 1;
                }
            }
            "Strip" if decoder["content"] == " " && decoder["stop"] == 0 => {
                self.leading_spaces = decoder["start"].as_u64().unwrap_or(0) as usize;
            }
            "WordPiece" => {
                self.steps.push(Step::WordPiece {
                    prefix: text(&decoder["prefix"]),
                    cleans_up: decoder["cleanup"] == true,
                });
                self.leading_spaces = 1;
            }
            // Joins tokens, as bytes are anyway.
            "Fuse" => {}
            other => {
                return Err(format!(
                    "tokenizer.json has a decoder of a kind that is not supported: {other}"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn is_byte_level(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, Step::ByteLevel))
    }

    /// Spaces taken from the start of a text.
    pub(super) fn leading_spaces(&self) -> usize {
        self.leading_spaces
    }

    /// Appends the bytes of a token.
    pub(super) fn push_bytes(&self, token: &str, bytes: &mut Vec<u8>) {
        let mut text = std::borrow::Cow::Borrowed(token);
        for step in &self.steps {
            match step {
                Step::Replace { from, to } => {
                    if text.contains(from.as_str()) {
                        text = text.replace(from.as_str(), to).into();
                    }
                }
                Step::WordPiece { prefix, cleans_up } => {
                    text = match text.strip_prefix(prefix.as_str()) {
                        Some(rest) => rest.to_owned().into(),
                        None if *cleans_up && ATTACHED.iter().any(|end| text.starts_with(end)) => {
                            text
                        }
                        None => format!(" {text}").into(),
                    };
                }
                Step::ByteFallback => {
                    if let Some(byte) = fallback_byte(&text) {
                        bytes.push(byte);
                        return;
                    }
                }
                Step::ByteLevel => {
                    let start = bytes.len();
                    for character in text.chars() {
                        let Some(byte) = BYTE_OF_CHAR.get(&character) else {
                            // Not spelled in the byte alphabet: it stands for itself.
                            bytes.truncate(start);
                            bytes.extend_from_slice(text.as_bytes());
                            return;
                        };
                        bytes.push(*byte);
                    }
                    return;
                }
            }
        }
        bytes.extend_from_slice(text.as_bytes());
    }
}

/// `<0x0A>` is the byte 10.
fn fallback_byte(token: &str) -> Option<u8> {
    let hex = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() == 2 {
        u8::from_str_radix(hex, 16).ok()
    } else {
        None
    }
}

/// GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes take the characters from
/// U+0100 on, in order.
static BYTE_OF_CHAR: LazyLock<HashMap<char, u8>> = LazyLock::new(|| {
    let mut next = 0x100_u32;
    (0..=u8::MAX)
        .filter_map(|byte| {
            let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
            let code = if printable {
                u32::from(byte)
            } else {
                next += 1;
                next - 1
            };
            Some((char::from_u32(code)?, byte))
        })
        .collect()
});
