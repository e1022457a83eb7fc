//! A model's tokenizer: text to ids, and the exact bytes each id stands for.

mod decoding;
mod facts;
mod segments;

use std::{collections::HashSet, fmt, path::Path};

use macmlx_inference::InferenceError;
use macmlx_output::grammar::Vocabulary;

use decoding::Decoding;
pub(crate) use facts::{Facts, read_json, read_text};
pub use segments::EncoderTokens;
pub(crate) use segments::Segment;

/// `tokenizer.json` with what the files beside it say about special tokens.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// Bytes of all tokens, one after the other; token `i` is `ends[i - 1]..ends[i]`.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    special: HashSet<u32>,
    /// Spaces the decoder takes from the start of a text (`SentencePiece` puts one there).
    leading_spaces: usize,
    bos: Option<Special>,
    eos_token: Option<String>,
    eos_token_ids: Vec<u32>,
    add_bos_token: Option<bool>,
}

/// What grammars know of a tokenizer.
impl Vocabulary for Tokenizer {
    fn size(&self) -> usize {
        self.vocab_size()
    }

    fn token_bytes(&self, id: u32) -> &[u8] {
        Self::token_bytes(self, id)
    }

    fn special_ids(&self) -> Vec<u32> {
        Self::special_ids(self).collect()
    }

    fn eos_ids(&self) -> &[u32] {
        self.eos_token_ids()
    }
}

impl fmt::Debug for Tokenizer {
    /// Leaves out the vocabulary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_size", &self.vocab_size())
            .field("bos", &self.bos)
            .field("eos_token_ids", &self.eos_token_ids)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Special {
    text: String,
    id: u32,
}

impl Tokenizer {
    /// Reads `tokenizer.json` and, where they exist, `tokenizer_config.json`,
    /// `special_tokens_map.json`, `generation_config.json` and `config.json`. `model` names the
    /// model in errors.
    pub fn load(model_dir: &Path, model: &str) -> Result<Self, InferenceError> {
        let facts = Facts::read(model_dir, model)?;
        Self::with_facts(model_dir, model, &facts)
    }

    pub(crate) fn with_facts(
        model_dir: &Path,
        model: &str,
        facts: &Facts,
    ) -> Result<Self, InferenceError> {
        let fail = |reason: String| InferenceError::ModelLoad {
            model: model.into(),
            reason,
        };
        let unusable =
            |error: &dyn fmt::Display| fail(format!("tokenizer.json cannot be used: {error}"));
        let file =
            std::fs::read(model_dir.join("tokenizer.json")).map_err(|error| unusable(&error))?;
        let mut inner = tokenizers::Tokenizer::from_bytes(&file)
            .or_else(|error| match macmlx_json::parse_python(&file) {
                Ok(mended) => tokenizers::Tokenizer::from_bytes(mended.to_string()),
                Err(_) => Err(error),
            })
            .map_err(|error| unusable(&error))?;
        // Limits made for training would silently cut prompts.
        inner.with_padding(None);
        inner
            .with_truncation(None)
            .map_err(|error| unusable(&error))?;

        let decoding = Decoding::of(inner.get_decoder()).map_err(fail)?;
        let added = inner.get_added_tokens_decoder();
        let vocab = inner.get_vocab(true);
        let vocab_size = vocab.values().max().map_or(0, |id| *id as usize + 1);
        let special: HashSet<u32> = added
            .iter()
            .filter(|(_, token)| token.special)
            .map(|(id, _)| *id)
            .chain(
                facts
                    .special
                    .iter()
                    .filter_map(|text| inner.token_to_id(text)),
            )
            .collect();

        let mut texts: Vec<Option<&str>> = vec![None; vocab_size];
        for (text, id) in &vocab {
            texts[*id as usize] = Some(text);
        }
        let mut bytes = Vec::with_capacity(vocab_size * 8);
        let mut ends = Vec::with_capacity(vocab_size);
        for (id, text) in (0_u32..).zip(texts) {
            if let Some(text) = text {
                if special.contains(&id) || (decoding.is_byte_level() && added.contains_key(&id)) {
                    bytes.extend_from_slice(text.as_bytes());
                } else {
                    decoding.push_bytes(text, &mut bytes);
                }
            }
            ends.push(bytes.len() as u32);
        }

        let mut eos_token_ids = facts.eos_token_ids.clone();
        eos_token_ids.extend(
            facts
                .eos_token
                .as_deref()
                .and_then(|text| inner.token_to_id(text)),
        );
        eos_token_ids.sort_unstable();
        eos_token_ids.dedup();
        let bos = facts.bos_token.as_ref().and_then(|text| {
            Some(Special {
                text: text.clone(),
                id: inner.token_to_id(text)?,
            })
        });
        Ok(Self {
            leading_spaces: decoding.leading_spaces(),
            inner,
            bytes,
            ends,
            special,
            bos,
            eos_token: facts.eos_token.clone(),
            eos_token_ids,
            add_bos_token: facts.add_bos_token,
        })
    }

    /// Token ids of a text. Special tokens written in the text are recognised. With `add_special`
    /// the tokenizer's own (usually a BOS token) are added; a chat template writes them itself.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, InferenceError> {
        let encoding =
            self.inner
                .encode_fast(text, add_special)
                .map_err(|error| InferenceError::Engine {
                    message: format!("the tokenizer failed: {error}"),
                })?;
        let mut ids = encoding.get_ids().to_vec();
        // `add_bos_token` has the last word over tokenizer.json's post-processor, as in
        // `transformers`.
        if let (true, Some(wanted), Some(bos)) = (add_special, self.add_bos_token, &self.bos) {
            let starts_with_bos = ids.first() == Some(&bos.id);
            if wanted && !starts_with_bos {
                ids.insert(0, bos.id);
            } else if !wanted && starts_with_bos && !text.starts_with(&bos.text) {
                ids.remove(0);
            }
        }
        Ok(ids)
    }

    /// Text of a whole sequence of ids, special tokens included; what is not UTF-8 becomes U+FFFD.
    pub fn detokenize(&self, ids: &[u32]) -> String {
        let mut bytes: Vec<u8> = Vec::with_capacity(ids.len() * 4);
        for &id in ids {
            bytes.extend_from_slice(self.token_bytes(id));
        }
        let spaces = bytes
            .iter()
            .take(self.leading_spaces)
            .take_while(|byte| **byte == b' ')
            .count();
        String::from_utf8_lossy(&bytes[spaces..]).into_owned()
    }

    /// The bytes a token stands for in the middle of a text; they need not be UTF-8 on their own.
    /// Empty for ids outside the vocabulary (models pad their embedding rows).
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else {
            return &[];
        };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start as usize..end as usize]
    }

    /// Highest id plus one.
    pub fn vocab_size(&self) -> usize {
        self.ends.len()
    }

    /// Whether the token is a control token that people do not see, such as `<|im_end|>`.
    pub fn is_special(&self, id: u32) -> bool {
        self.special.contains(&id)
    }

    /// Id of a token by its text as the vocabulary spells it.
    pub fn token_id(&self, text: &str) -> Option<u32> {
        self.inner.token_to_id(text)
    }

    /// Tokens that end a generation: those of `generation_config.json`, config.json and the
    /// tokenizer's own, sorted.
    pub fn eos_token_ids(&self) -> &[u32] {
        &self.eos_token_ids
    }

    /// The token that begins a text, if the model has one.
    pub fn bos_token_id(&self) -> Option<u32> {
        self.bos.as_ref().map(|bos| bos.id)
    }

    /// Text of the BOS token.
    pub fn bos_token(&self) -> Option<&str> {
        self.bos.as_ref().map(|bos| bos.text.as_str())
    }

    /// Text of the tokenizer's own EOS token.
    pub fn eos_token(&self) -> Option<&str> {
        self.eos_token.as_deref()
    }

    /// Spaces the tokenizer's decoder takes from the start of a text.
    pub(crate) fn leading_spaces(&self) -> usize {
        self.leading_spaces
    }

    /// Ids of the special tokens.
    pub(crate) fn special_ids(&self) -> impl Iterator<Item = u32> {
        self.special.iter().copied()
    }
}
