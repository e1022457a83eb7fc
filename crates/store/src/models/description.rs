//! What the files beside a model's weights say about it.

use std::{fs, path::Path};

use macmlx_inference::{ModelCard, ModelDescription};
use serde_json::Value;

/// A licence's text longer than this is cut, since a reply is no place to read it.
const MAX_LICENSE_BYTES: usize = 256 * 1024;

/// Reads them; what is missing or damaged is left out.
pub fn describe(card: &ModelCard) -> ModelDescription {
    let folder = &card.path;
    ModelDescription {
        config: json(&folder.join("config.json")),
        generation_config: json(&folder.join("generation_config.json")),
        license: license(folder),
    }
}

pub(super) fn json(path: &Path) -> Value {
    fs::read(path)
        .ok()
        .and_then(|bytes| macmlx_json::parse_python(&bytes).ok())
        .unwrap_or_default()
}

fn license(folder: &Path) -> Option<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_license(name))
        .collect();
    names.sort();
    let mut bytes = fs::read(folder.join(names.first()?)).ok()?;
    bytes.truncate(MAX_LICENSE_BYTES);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a file of this name holds a licence.
pub(super) fn is_license(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    ["LICENSE", "LICENCE"]
        .iter()
        .any(|wanted| stem.eq_ignore_ascii_case(wanted))
}
