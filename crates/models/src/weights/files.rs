//! Safetensors files of a model folder: shards, with or without an index.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
};

use mlx_rs::Array;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{ModelError, Result};

const INDEX: &str = "model.safetensors.index.json";

#[derive(Deserialize)]
struct Index {
    weight_map: HashMap<String, String>,
}

/// All tensors of the folder. MLX reads each from its file when it is first evaluated.
pub(crate) fn load_arrays(folder: &Path) -> Result<HashMap<String, Array>> {
    let mut arrays = HashMap::new();
    for path in shards(folder)? {
        let shard = Array::load_safetensors(&path).map_err(|error| ModelError::WeightFile {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        arrays.extend(shard);
    }
    Ok(arrays)
}

/// The files that the index lists; without an index, each `model*.safetensors`.
fn shards(folder: &Path) -> Result<Vec<PathBuf>> {
    let index = folder.join(INDEX);
    if index.is_file() {
        let Index { weight_map } = read_json(&index)?;
        let names: BTreeSet<_> = weight_map.into_values().collect();
        let paths: Vec<_> = names.iter().map(|name| folder.join(name)).collect();
        return match paths.iter().find(|path| !path.is_file()) {
            Some(path) => Err(ModelError::WeightFile {
                path: path.clone(),
                reason: format!("{INDEX} lists it and it is not there"),
            }),
            None => Ok(paths),
        };
    }
    let unreadable = |source| ModelError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("model") && name.ends_with(".safetensors") {
            paths.push(folder.join(&*name));
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(ModelError::WeightFile {
            path: folder.join("model.safetensors"),
            reason: "the folder holds no model*.safetensors".to_owned(),
        });
    }
    Ok(paths)
}

/// A JSON file of a model's folder.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).map_err(|source| ModelError::Read {
        path: path.to_owned(),
        source,
    })?;
    macmlx_json::read_python(&text).map_err(|source| ModelError::File {
        path: path.to_owned(),
        source,
    })
}
