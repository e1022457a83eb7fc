//! One model folder: complete and described, or incomplete with the reason.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use macmlx_inference::{ModelCard, ModelTask};

use super::{Encoders, config, create, digest, task, weights};

/// A folder that holds a model or was meant to.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// `owner/repo`, or the folder's name.
    pub id: String,
    pub path: PathBuf,
    pub state: State,
}

/// Whether a folder can be loaded.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    Complete(ModelCard),
    /// What is missing or wrong, in words for a person.
    Incomplete {
        reason: String,
    },
}

impl Entry {
    /// The card of a complete model.
    pub fn card(&self) -> Option<&ModelCard> {
        match &self.state {
            State::Complete(card) => Some(card),
            State::Incomplete { .. } => None,
        }
    }
}

/// Whether a folder is meant to be a model, complete or not, rather than a folder of models.
pub(super) fn is_model(folder: &Path) -> bool {
    folder.join("config.json").is_file()
        || fs::read_dir(folder).is_ok_and(|mut entries| {
            entries.any(|entry| {
                entry.is_ok_and(|entry| {
                    let name = entry.file_name();
                    let name = Path::new(&name);
                    name.extension()
                        .is_some_and(|end| end == "safetensors" || end == "gguf")
                })
            })
        })
}

/// What changes when a file of a folder does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Newest change of any file.
    modified: Option<SystemTime>,
    size_bytes: u64,
}

impl Stamp {
    pub(super) fn of(folder: &Path) -> Self {
        let files = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                // Through links, as the hub's own cache has them.
                fs::metadata(entry.ok()?.path()).ok()
            });
        files.fold(
            Self {
                modified: None,
                size_bytes: 0,
            },
            |stamp, file| Self {
                modified: stamp.modified.max(file.modified().ok()),
                size_bytes: stamp.size_bytes + file.len(),
            },
        )
    }
}

/// Describes a folder.
pub(super) fn describe(id: &str, folder: &Path, stamp: Stamp, encoders: &Encoders) -> Entry {
    let state = match card(id, folder, stamp, encoders) {
        Ok(card) => State::Complete(card),
        Err(reason) => State::Incomplete { reason },
    };
    Entry {
        id: id.to_owned(),
        path: folder.to_path_buf(),
        state,
    }
}

fn card(id: &str, folder: &Path, stamp: Stamp, encoders: &Encoders) -> Result<ModelCard, String> {
    let text = fs::read(folder.join("config.json")).map_err(|_| without_config(folder))?;
    let config = macmlx_json::parse_python(&text)
        .map_err(|error| format!("config.json is damaged: {error}"))?;
    let facts = config::facts(&config)?;
    let weights = weights::inspect(folder, &facts.quantization)?;
    if !folder.join("tokenizer.json").is_file() {
        return Err("tokenizer.json is missing".into());
    }
    let task = task::detect(id, folder, &config, encoders)?;
    let context_length = match task {
        ModelTask::Generate => facts.context_length,
        ModelTask::Embed | ModelTask::Rerank => task::encoder_length(folder, &config, encoders)?,
    };
    let identity = String::from_utf8_lossy(&text).into_owned() + &create::identity(folder);
    let digest = digest::digest(&identity, &weights.files).map_err(|error| error.to_string())?;
    Ok(ModelCard {
        id: id.to_owned(),
        path: folder.to_path_buf(),
        model_type: facts.model_type,
        task,
        context_length,
        size_bytes: weights.size_bytes,
        quantization: facts.quantization.name().or(weights.dtype).or(facts.dtype),
        parameters: Some(weights.parameters),
        modified_unix: stamp.modified.map_or(0, unix_seconds),
        digest,
        modelfile: create::modelfile(folder)?,
    })
}

fn without_config(folder: &Path) -> String {
    let gguf = fs::read_dir(folder).ok().and_then(|entries| {
        entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|end| end == "gguf"))
    });
    match gguf {
        Some(file) => format!(
            "it is GGUF; turn it into an MLX model with `macmlx import {}`",
            file.display()
        ),
        None => "config.json is missing".into(),
    }
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs())
}
