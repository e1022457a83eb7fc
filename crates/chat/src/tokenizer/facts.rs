//! What the small JSON files beside tokenizer.json say about special tokens.

use std::{fs, io::ErrorKind, path::Path};

use macmlx_inference::InferenceError;
use serde_json::Value;

use crate::infill::NamedTokens;

/// Facts about a model's text side that tokenizer.json does not hold.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) bos_token: Option<String>,
    pub(crate) eos_token: Option<String>,
    /// End tokens of `generation_config.json` and config.json, in no order.
    pub(crate) eos_token_ids: Vec<u32>,
    pub(crate) add_bos_token: Option<bool>,
    /// Texts of all tokens these files call special.
    pub(crate) special: Vec<String>,
    /// Tokens around a gap.
    pub(crate) infill: NamedTokens,
    /// Texts of the tokens with a role, by the role's name in templates.
    named: Vec<(&'static str, String)>,
    /// `tokenizer_config.json`, which may hold a chat template.
    pub(crate) tokenizer_config: Value,
}

impl Facts {
    pub(crate) fn read(model_dir: &Path, model: &str) -> Result<Self, InferenceError> {
        let read =
            |name| Ok::<_, InferenceError>(read_json(model_dir, name, model)?.unwrap_or_default());
        let tokenizer_config = read("tokenizer_config.json")?;
        let special_tokens_map = read("special_tokens_map.json")?;
        let config = read("config.json")?;
        let eos_token_ids = [
            &read("generation_config.json")?["eos_token_id"],
            &config["eos_token_id"],
            &config["text_config"]["eos_token_id"],
        ]
        .into_iter()
        .flat_map(ids)
        .collect();

        let named = |key: &str| {
            token_text(&tokenizer_config[key]).or_else(|| token_text(&special_tokens_map[key]))
        };
        let mut special: Vec<String> = tokenizer_config["added_tokens_decoder"]
            .as_object()
            .into_iter()
            .flat_map(|tokens| tokens.values())
            .filter(|token| token["special"] == true)
            .filter_map(token_text)
            .collect();
        for file in [&tokenizer_config, &special_tokens_map] {
            special.extend(
                file["additional_special_tokens"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(token_text),
            );
        }
        let (bos_token, eos_token) = (named("bos_token"), named("eos_token"));
        special.extend(bos_token.clone());
        special.extend(eos_token.clone());
        let named = ["bos_token", "eos_token", "unk_token", "pad_token"]
            .into_iter()
            .filter_map(|role| Some((role, named(role)?)))
            .collect();
        Ok(Self {
            infill: infill_tokens(&tokenizer_config, &special_tokens_map),
            named,
            bos_token,
            eos_token,
            eos_token_ids,
            add_bos_token: tokenizer_config["add_bos_token"].as_bool(),
            special,
            tokenizer_config,
        })
    }
}

impl Facts {
    /// `bos_token` and the like with their texts, as templates know them.
    pub(crate) fn named_tokens(&self) -> Vec<(&'static str, String)> {
        self.named.clone()
    }
}

/// The files' own word on tokens around a gap.
fn infill_tokens(tokenizer_config: &Value, special_tokens_map: &Value) -> NamedTokens {
    let files = [tokenizer_config, special_tokens_map];
    NamedTokens::read(|role| files.into_iter().find_map(|file| token_text(&file[role])))
}

/// Tokens are written as their text or as an object with `content`.
fn token_text(token: &Value) -> Option<String> {
    token
        .as_str()
        .or_else(|| token["content"].as_str())
        .map(str::to_owned)
}

/// `eos_token_id` is one id or a list.
fn ids(value: &Value) -> Vec<u32> {
    let one = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        Value::Array(values) => values.iter().filter_map(one).collect(),
        value => one(value).into_iter().collect(),
    }
}

/// A JSON file of the model's folder; `None` when it is not there.
pub(crate) fn read_json(
    model_dir: &Path,
    name: &str,
    model: &str,
) -> Result<Option<Value>, InferenceError> {
    let Some(text) = read_bytes(model_dir, name, model)? else {
        return Ok(None);
    };
    macmlx_json::parse_python(&text)
        .map(Some)
        .map_err(|error| InferenceError::ModelLoad {
            model: model.into(),
            reason: format!("{name} is not valid JSON: {error}"),
        })
}

/// A text file of the model's folder; `None` when it is not there.
pub(crate) fn read_text(
    model_dir: &Path,
    name: &str,
    model: &str,
) -> Result<Option<String>, InferenceError> {
    let bytes = read_bytes(model_dir, name, model)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn read_bytes(
    model_dir: &Path,
    name: &str,
    model: &str,
) -> Result<Option<Vec<u8>>, InferenceError> {
    match fs::read(model_dir.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(InferenceError::ModelLoad {
            model: model.into(),
            reason: format!("{name} cannot be read: {error}"),
        }),
    }
}
