//! Which weight files a model folder must have, and what their headers say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::config::{GroupSizes, short_dtype};
use crate::safetensors::{self, Tensor};

const INDEX: &str = "model.safetensors.index.json";

/// The weights of a complete folder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weights {
    /// The files, in the order of their names.
    pub files: Vec<PathBuf>,
    pub size_bytes: u64,
    pub parameters: u64,
    /// Data type of most values that are not packed.
    pub dtype: Option<String>,
}

/// Finds and checks the weight files; the error is a reason for a person.
pub(super) fn inspect(folder: &Path, groups: &GroupSizes) -> Result<Weights, String> {
    let files = files(folder)?;
    let mut size_bytes = 0;
    let mut tensors = BTreeMap::new();
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let header =
            safetensors::read_header(file).map_err(|reason| format!("{name}: {reason}"))?;
        size_bytes += header.file_bytes;
        tensors.extend(header.tensors);
    }
    Ok(Weights {
        files,
        size_bytes,
        parameters: parameters(&tensors, groups),
        dtype: main_dtype(&tensors),
    })
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let index = folder.join(INDEX);
    let names: BTreeSet<String> = if index.is_file() {
        let text = fs::read_to_string(&index).map_err(|error| format!("{INDEX}: {error}"))?;
        let index: Value =
            serde_json::from_str(&text).map_err(|error| format!("{INDEX}: {error}"))?;
        let map = index["weight_map"]
            .as_object()
            .ok_or_else(|| format!("{INDEX} has no weight_map"))?;
        map.values()
            .filter_map(|file| file.as_str().map(str::to_owned))
            .collect()
    } else {
        let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".safetensors"))
            .collect()
    };
    let missing: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !folder.join(name).is_file())
        .collect();
    match (missing.as_slice(), names.is_empty()) {
        ([], false) => Ok(names.iter().map(|name| folder.join(name)).collect()),
        ([], true) => Err("it has no .safetensors weights".into()),
        ([one], _) => Err(format!("the weight file {one} is missing")),
        ([first, rest @ ..], _) => Err(format!(
            "{} weight files are missing ({first} and others)",
            rest.len() + 1
        )),
    }
}

/// Counts values as the model was made: each scale of a quantized layer stands for its group.
fn parameters(tensors: &BTreeMap<String, Tensor>, groups: &GroupSizes) -> u64 {
    tensors
        .iter()
        .map(|(name, tensor)| {
            let Some((layer, kind)) = name.rsplit_once('.') else {
                return tensor.elements();
            };
            match kind {
                "scales" => tensor.elements() * groups.of(layer),
                "biases" => 0,
                _ if tensors.contains_key(&format!("{layer}.scales")) && kind == "weight" => 0,
                _ => tensor.elements(),
            }
        })
        .sum()
}

fn main_dtype(tensors: &BTreeMap<String, Tensor>) -> Option<String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for tensor in tensors.values().filter(|tensor| tensor.dtype != "U32") {
        *counts.entry(&tensor.dtype).or_default() += tensor.elements();
    }
    let (dtype, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    Some(short_dtype(dtype).to_owned())
}
