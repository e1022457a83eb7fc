//! The tokenizer inside a GGUF file as the files Hugging Face's libraries read.

mod byte_pair;
mod pre_tokenizer;
mod sentence_piece;

use serde_json::{Map, Value, json};

use crate::{Error, metadata::Metadata};

const CHAT_TEMPLATE: &str = "tokenizer.chat_template";
/// Control tokens that end an answer in some family, whether or not the file says so.
const END_TOKENS: [&str; 9] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<EOT>",
    "</s>",
];

/// The three files.
#[derive(Debug)]
pub(crate) struct Files {
    pub tokenizer: Value,
    pub tokenizer_config: Value,
    pub generation_config: Value,
}

/// A token's role, by ggml's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

/// The vocabulary, in the order of ids.
#[derive(Debug)]
struct Vocabulary<'a> {
    tokens: Vec<&'a str>,
    kinds: Vec<TokenKind>,
}

/// Special tokens by role.
#[derive(Debug, Clone, Copy, Default)]
struct Special {
    bos: Option<u64>,
    eos: Option<u64>,
    unknown: Option<u64>,
    padding: Option<u64>,
    add_bos: bool,
    add_eos: bool,
}

/// Builds the tokenizer's files; `context_length` is what its config names as the longest input.
pub(crate) fn build(metadata: &Metadata, context_length: u64) -> Result<Files, Error> {
    let model = metadata
        .string("tokenizer.ggml.model")?
        .ok_or_else(|| Error::MissingKey("tokenizer.ggml.model".into()))?;
    let vocabulary = Vocabulary::read(metadata)?;
    let mut special = Special::read(metadata)?;
    let tokenizer = match model {
        "gpt2" => byte_pair::build(metadata, &vocabulary, &mut special)?,
        "llama" => sentence_piece::build(metadata, &vocabulary, &mut special)?,
        other => {
            return Err(Error::Unsupported {
                what: "tokenizer",
                value: other.to_owned(),
            });
        }
    };
    Ok(Files {
        tokenizer,
        tokenizer_config: tokenizer_config(metadata, &vocabulary, special, context_length)?,
        generation_config: generation_config(metadata, &vocabulary, special)?,
    })
}

impl<'a> Vocabulary<'a> {
    fn read(metadata: &'a Metadata) -> Result<Self, Error> {
        let tokens = metadata
            .strings("tokenizer.ggml.tokens")?
            .ok_or_else(|| Error::MissingKey("tokenizer.ggml.tokens".into()))?;
        let kinds = match metadata.unsigneds("tokenizer.ggml.token_type")? {
            Some(numbers) => numbers.into_iter().map(TokenKind::from_number).collect(),
            None => vec![TokenKind::Normal; tokens.len()],
        };
        if kinds.len() != tokens.len() {
            return Err(Error::Damaged(
                "token types and tokens differ in number".into(),
            ));
        }
        Ok(Self { tokens, kinds })
    }

    fn token(&self, id: u64) -> Option<&'a str> {
        self.tokens.get(usize::try_from(id).ok()?).copied()
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &'a str, TokenKind)> + '_ {
        self.tokens
            .iter()
            .zip(&self.kinds)
            .enumerate()
            .map(|(id, (token, kind))| (id, *token, *kind))
    }

    /// Token to id, as tokenizer.json has it.
    fn map(&self) -> Map<String, Value> {
        self.iter()
            .map(|(id, token, _)| (token.to_owned(), json!(id)))
            .collect()
    }

    /// Tokens that are found in text before any splitting.
    fn list_added(&self) -> Value {
        self.iter()
            .filter_map(|(id, token, kind)| {
                let is_special = match kind {
                    TokenKind::Control | TokenKind::Unknown => true,
                    TokenKind::UserDefined => false,
                    TokenKind::Normal | TokenKind::Unused | TokenKind::Byte => return None,
                };
                Some(json!({
                    "id": id, "content": token, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": is_special
                }))
            })
            .collect()
    }
}

impl TokenKind {
    fn from_number(number: u64) -> Self {
        match number {
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => Self::Normal,
        }
    }
}

impl Special {
    fn read(metadata: &Metadata) -> Result<Self, Error> {
        let id = |key: &str| metadata.unsigned(&format!("tokenizer.ggml.{key}"));
        Ok(Self {
            bos: id("bos_token_id")?,
            eos: id("eos_token_id")?,
            unknown: id("unknown_token_id")?,
            padding: id("padding_token_id")?,
            add_bos: false,
            add_eos: false,
        })
    }

    /// The file's own word, or what the family does.
    fn decide(&mut self, metadata: &Metadata, family_adds_bos: bool) -> Result<(), Error> {
        self.add_bos = self.bos.is_some()
            && metadata
                .flag("tokenizer.ggml.add_bos_token")?
                .unwrap_or(family_adds_bos);
        self.add_eos = self.eos.is_some()
            && metadata
                .flag("tokenizer.ggml.add_eos_token")?
                .unwrap_or(false);
        Ok(())
    }

    /// A post-processor that adds the tokens the model expects around a text, if any.
    fn template(&self, vocabulary: &Vocabulary<'_>) -> Option<Value> {
        let named = |add: bool, id: Option<u64>| {
            let id = id.filter(|_| add)?;
            Some((id, vocabulary.token(id)?))
        };
        let first = named(self.add_bos, self.bos);
        let last = named(self.add_eos, self.eos);
        if first.is_none() && last.is_none() {
            return None;
        }
        let piece = |sequence: &str, type_id: u32| {
            let special = |(_, token): &(u64, &str)| json!({"SpecialToken": {"id": token, "type_id": type_id}});
            let text = json!({"Sequence": {"id": sequence, "type_id": type_id}});
            first
                .iter()
                .map(special)
                .chain([text])
                .chain(last.iter().map(special))
                .collect::<Vec<_>>()
        };
        let tokens: Map<String, Value> = first
            .iter()
            .chain(last.iter())
            .map(|(id, token)| {
                (
                    (*token).to_owned(),
                    json!({"id": token, "ids": [id], "tokens": [token]}),
                )
            })
            .collect();
        let pair = [piece("A", 0), piece("B", 1)].concat();
        Some(json!({
            "type": "TemplateProcessing",
            "single": piece("A", 0),
            "pair": pair,
            "special_tokens": tokens
        }))
    }
}

/// Tokens around a gap: their names in `tokenizer_config.json` and in metadata, the newer one first. The
/// first three go by the names that transformers has for Code Llama; of the others it has none.
const INFILL_TOKENS: &[(&str, &[&str])] = &[
    ("prefix_token", &["fim_pre_token_id", "prefix_token_id"]),
    ("suffix_token", &["fim_suf_token_id", "suffix_token_id"]),
    ("middle_token", &["fim_mid_token_id", "middle_token_id"]),
    ("fim_pad_token", &["fim_pad_token_id"]),
    ("fim_rep_token", &["fim_rep_token_id"]),
    ("fim_sep_token", &["fim_sep_token_id"]),
];

fn tokenizer_config(
    metadata: &Metadata,
    vocabulary: &Vocabulary<'_>,
    special: Special,
    context_length: u64,
) -> Result<Value, Error> {
    let mut config = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": false,
        "model_max_length": context_length,
        "add_bos_token": special.add_bos,
        "add_eos_token": special.add_eos
    });
    for (key, id) in [
        ("bos_token", special.bos),
        ("eos_token", special.eos),
        ("unk_token", special.unknown),
        ("pad_token", special.padding),
    ] {
        if let Some(token) = id.and_then(|id| vocabulary.token(id)) {
            config[key] = json!(token);
        }
    }
    for (name, keys) in INFILL_TOKENS {
        for key in *keys {
            let id = metadata.unsigned(&format!("tokenizer.ggml.{key}"))?;
            if let Some(token) = id.and_then(|id| vocabulary.token(id)) {
                config[*name] = json!(token);
                break;
            }
        }
    }
    if let Some(template) = chat_template(metadata)? {
        config["chat_template"] = template;
    }
    Ok(config)
}

/// One template, or a list of named ones when there are several.
fn chat_template(metadata: &Metadata) -> Result<Option<Value>, Error> {
    let Some(default) = metadata.string(CHAT_TEMPLATE)? else {
        return Ok(None);
    };
    let prefix = format!("{CHAT_TEMPLATE}.");
    let mut names: Vec<&str> = metadata.suffixes(&prefix).collect();
    if names.is_empty() {
        return Ok(Some(json!(default)));
    }
    names.sort_unstable();
    let mut templates = vec![json!({"name": "default", "template": default})];
    for name in names {
        if let Some(template) = metadata.string(&format!("{prefix}{name}"))? {
            templates.push(json!({"name": name, "template": template}));
        }
    }
    Ok(Some(Value::Array(templates)))
}

fn generation_config(
    metadata: &Metadata,
    vocabulary: &Vocabulary<'_>,
    special: Special,
) -> Result<Value, Error> {
    let mut ends: Vec<u64> = Vec::new();
    let mut add = |id: u64| {
        if !ends.contains(&id) {
            ends.push(id);
        }
    };
    if let Some(eos) = special.eos {
        add(eos);
    }
    for key in ["eot_token_id", "eom_token_id"] {
        if let Some(id) = metadata.unsigned(&format!("tokenizer.ggml.{key}"))? {
            add(id);
        }
    }
    for (id, token, kind) in vocabulary.iter() {
        if kind == TokenKind::Control && END_TOKENS.contains(&token) {
            add(id as u64);
        }
    }
    let mut config = json!({"eos_token_id": ends});
    for (key, id) in [
        ("bos_token_id", special.bos),
        ("pad_token_id", special.padding),
    ] {
        if let Some(id) = id {
            config[key] = json!(id);
        }
    }
    Ok(config)
}
