//! The import itself: read the header, decide, write a folder beside its place, put it there.

use std::{
    fs::{self, File},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use crate::{
    Error,
    architecture::{Architecture, Undo},
    config::{self, HeadCounts, Observed},
    header::{self, Header, Tensor},
    plan, tokenizer,
    write::{self, SHARD_BYTES, Writer},
};

/// Owner of models whose name was not given.
const DEFAULT_OWNER: &str = "local";

/// What to import and where to.
#[derive(Debug, Clone)]
pub struct Options {
    pub file: PathBuf,
    /// `owner/repo` (or a bare name) below `models`; see [`default_id`].
    pub id: String,
    /// Folder of all models.
    pub models: PathBuf,
}

/// How far an import is, counted in bytes written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub done_bytes: u64,
    pub total_bytes: u64,
}

/// A model that is now there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    pub id: String,
    pub path: PathBuf,
    pub model_type: String,
    pub tensors: usize,
    pub size_bytes: u64,
}

/// The name of a model whose file has this path: `local/<file name>`.
pub fn default_id(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name: String = stem
        .chars()
        .map(|c| if is_name_character(c) { c } else { '-' })
        .collect();
    let name = name.trim_matches(['.', '-']);
    format!(
        "{DEFAULT_OWNER}/{}",
        if name.is_empty() { "model" } else { name }
    )
}

/// Turns a GGUF file into a model folder. Either the whole folder is there afterwards or nothing
/// is. Blocks for as long as copying the file takes; `progress` may end it.
pub fn import(
    options: &Options,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Imported, Error> {
    check_name(&options.id)?;
    let destination = options.models.join(&options.id);
    if destination.exists() {
        return Err(Error::Exists { path: destination });
    }
    let header = header::read(&options.file)?;
    let parts = header.metadata.unsigned("split.count")?;
    if let Some(count) = parts.filter(|count| *count > 1) {
        return Err(Error::Split { count });
    }
    fs::create_dir_all(&options.models).map_err(Error::io(&options.models))?;
    // Hidden, so that a scan never takes it for a model; on the same volume, so that it can be
    // renamed; removed when dropped.
    let building = tempfile::Builder::new()
        .prefix(".importing-")
        .tempdir_in(&options.models)
        .map_err(Error::io(&options.models))?;
    let folder = building.path().join("model");
    fs::create_dir(&folder).map_err(Error::io(&folder))?;
    let mut imported = write_folder(options, &header, &folder, progress)?;
    if let Some(owner) = destination.parent() {
        fs::create_dir_all(owner).map_err(Error::io(owner))?;
    }
    fs::rename(&folder, &destination).map_err(Error::io(&destination))?;
    imported.path = destination;
    Ok(imported)
}

fn write_folder(
    options: &Options,
    header: &Header,
    folder: &Path,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Imported, Error> {
    let metadata = &header.metadata;
    let architecture = Architecture::from_name(metadata.architecture())?;
    let mut items = plan::plan(architecture, &header.tensors)?;
    let source = File::open(&options.file).map_err(Error::io(&options.file))?;
    let compute = plan::compute_type(&items);
    write::narrow_vectors(&source, &mut items, compute).map_err(Error::io(&options.file))?;

    let tensor = |name: &str| header.tensors.iter().find(|tensor| tensor.name == name);
    let rope_factors = tensor("rope_freqs.weight")
        .map(|tensor| rope_factors(&source, tensor, &options.file))
        .transpose()?;
    let embedding =
        tensor("token_embd.weight").ok_or_else(|| Error::MissingKey("token_embd.weight".into()))?;
    let observed = Observed {
        vocabulary: embedding.shape.first().copied().unwrap_or_default(),
        has_output: tensor("output.weight").is_some(),
        has_attention_bias: tensor("blk.0.attn_q.bias").is_some(),
        has_output_bias: tensor("blk.0.attn_output.bias").is_some(),
        has_mlp_bias: tensor("blk.0.ffn_up.bias").is_some(),
        rope_factors,
        dtype: compute.config_name(),
    };
    let mut config = config::build(architecture, metadata, &observed)?;
    let tokenizer = tokenizer::build(metadata, metadata.required_unsigned("context_length")?)?;
    for key in ["bos_token_id", "eos_token_id", "pad_token_id"] {
        if let Some(id) = tokenizer.generation_config.get(key) {
            config.insert(key.into(), id.clone());
        }
    }
    if let Some(section) = plan::quantization(&items) {
        config.insert("quantization".into(), section.clone());
        // Where Hugging Face's own tools look.
        config.insert("quantization_config".into(), section);
    }

    Writer {
        source: &source,
        source_path: &options.file,
        folder,
        heads: HeadCounts::read(metadata)?,
        shard_bytes: SHARD_BYTES,
    }
    .write(&items, progress)?;
    write_json(folder, "tokenizer.json", &tokenizer.tokenizer)?;
    write_json(folder, "tokenizer_config.json", &tokenizer.tokenizer_config)?;
    write_json(
        folder,
        "generation_config.json",
        &tokenizer.generation_config,
    )?;
    write_json(folder, ".macmlx-meta.json", &origin(options, header))?;
    write_json(folder, "config.json", &Value::Object(config))?;
    let outputs: Vec<_> = items.iter().flat_map(plan::Item::outputs).collect();
    Ok(Imported {
        id: options.id.clone(),
        path: folder.to_path_buf(),
        model_type: architecture.model_type().to_owned(),
        tensors: outputs.len(),
        size_bytes: outputs.iter().map(|output| output.bytes).sum(),
    })
}

fn rope_factors(source: &File, tensor: &Tensor, file: &Path) -> Result<Vec<f32>, Error> {
    if tensor.kind != header::Kind::F32 || tensor.shape.len() != 1 {
        return Err(Error::Shape {
            tensor: tensor.name.clone(),
            shape: tensor.shape.clone(),
        });
    }
    write::vector(source, tensor, Undo::Nothing).map_err(Error::io(file))
}

/// Where the model came from, for people and for later versions.
fn origin(options: &Options, header: &Header) -> Value {
    let mut origin = Map::new();
    origin.insert("modelID".into(), json!(options.id));
    origin.insert(
        "importedFrom".into(),
        json!(
            options
                .file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
        ),
    );
    for (key, name) in [
        ("general.name", "name"),
        ("general.license", "license"),
        ("general.source.url", "source"),
    ] {
        if let Ok(Some(text)) = header.metadata.string(key) {
            origin.insert(name.into(), json!(text));
        }
    }
    Value::Object(origin)
}

fn write_json(folder: &Path, name: &str, value: &Value) -> Result<(), Error> {
    let path = folder.join(name);
    let text = if name == "tokenizer.json" {
        value.to_string()
    } else {
        format!("{value:#}\n")
    };
    fs::write(&path, text).map_err(Error::io(path))
}

/// One or two parts that are plain folder names.
fn check_name(id: &str) -> Result<(), Error> {
    let parts: Vec<&str> = id.split('/').collect();
    let is_plain = |part: &&str| {
        !part.is_empty() && !part.starts_with('.') && part.chars().all(is_name_character)
    };
    if (1..=2).contains(&parts.len()) && parts.iter().all(is_plain) {
        Ok(())
    } else {
        Err(Error::Name(id.to_owned()))
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_models_folder() {
        for good in ["owner/repo", "repo", "a-b_c.d/Q4_1"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "/", "../x", "a/b/c", "a/..", "a b", ".hidden", "owner/"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_name_becomes_an_id() {
        assert_eq!(
            default_id(Path::new("/tmp/SmolLM2 (135M).Q4_1.gguf")),
            "local/SmolLM2--135M-.Q4_1"
        );
        assert!(check_name(&default_id(Path::new("/tmp/...gguf"))).is_ok());
    }
}
