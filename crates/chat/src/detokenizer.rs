//! Ids to text while they come: never broken UTF-8, and nothing held back but an unfinished
//! character.

use std::sync::Arc;

use crate::Tokenizer;

/// Which special tokens appear in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecialTokens {
    Hide,
    Show,
    /// Special tokens with these ids: the markers that an output format looks for.
    Only(Vec<u32>),
}

/// How the space is treated that `SentencePiece` puts before the first word of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstSpace {
    /// The ids are a text of their own.
    Strip,
    /// The ids continue a text.
    Keep,
}

/// Streaming detokenizer of one sequence. A push costs as much as the token is long, whatever came
/// before.
#[derive(Debug)]
pub struct Detokenizer {
    tokenizer: Arc<Tokenizer>,
    special_tokens: SpecialTokens,
    spaces_to_strip: usize,
    /// The start of a character whose end has not come, then, during a push, the new bytes.
    pending: Vec<u8>,
    text: String,
}

impl Detokenizer {
    pub fn new(
        tokenizer: Arc<Tokenizer>,
        special_tokens: SpecialTokens,
        first_space: FirstSpace,
    ) -> Self {
        let spaces_to_strip = match first_space {
            FirstSpace::Strip => tokenizer.leading_spaces(),
            FirstSpace::Keep => 0,
        };
        Self {
            tokenizer,
            special_tokens,
            spaces_to_strip,
            pending: Vec::new(),
            text: String::new(),
        }
    }

    /// Takes a token and gives the text that is certain now. Bytes that can no longer become a
    /// character are U+FFFD at once.
    pub fn push(&mut self, id: u32) -> &str {
        self.text.clear();
        if !self.shows(id) {
            return &self.text;
        }
        let mut bytes = self.tokenizer.token_bytes(id);
        while self.spaces_to_strip > 0
            && let Some((first, rest)) = bytes.split_first()
        {
            if *first == b' ' {
                bytes = rest;
                self.spaces_to_strip -= 1;
            } else {
                self.spaces_to_strip = 0;
            }
        }
        if self.pending.is_empty() {
            let kept = bytes.len() - push_valid(bytes, &mut self.text);
            self.pending.extend_from_slice(&bytes[bytes.len() - kept..]);
        } else {
            self.pending.extend_from_slice(bytes);
            let used = push_valid(&self.pending, &mut self.text);
            self.pending.drain(..used);
        }
        &self.text
    }

    /// Whether an unfinished character is held back.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// No more tokens come: an unfinished character is U+FFFD.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        if !self.pending.is_empty() {
            self.pending.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        &self.text
    }

    fn shows(&self, id: u32) -> bool {
        match &self.special_tokens {
            SpecialTokens::Show => true,
            SpecialTokens::Hide => !self.tokenizer.is_special(id),
            SpecialTokens::Only(shown) => shown.contains(&id) || !self.tokenizer.is_special(id),
        }
    }
}

/// Appends what is certain of `bytes`, invalid sequences as U+FFFD; returns how many bytes that
/// was. The others begin a character.
fn push_valid(bytes: &[u8], text: &mut String) -> usize {
    let mut used = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        used += chunk.valid().len();
        let invalid = chunk.invalid();
        let is_last = used + invalid.len() == bytes.len();
        if invalid.is_empty() || (is_last && begins_a_character(invalid)) {
            return used;
        }
        text.push(char::REPLACEMENT_CHARACTER);
        used += invalid.len();
    }
    used
}

/// Whether more bytes could make these one valid character.
fn begins_a_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
