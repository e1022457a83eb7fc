//! Which weight files a model folder must have, and what their headers say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use macmlx_fit::{Quantization, count_parameters};
use safetensors::{
    Dtype,
    tensor::{Metadata, TensorInfo},
};

use super::config::short_dtype;

/// Longest header that is believed, as the format's own reader has it.
const MAX_HEADER_BYTES: u64 = 100_000_000;

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
pub(super) fn inspect(folder: &Path, quantization: &Quantization) -> Result<Weights, String> {
    let files = files(folder)?;
    let mut size_bytes = 0;
    let mut tensors = BTreeMap::new();
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let (header, file_bytes) = header(file).map_err(|reason| format!("{name}: {reason}"))?;
        size_bytes += file_bytes;
        for (name, tensor) in header.tensors() {
            tensors.insert(name, tensor.clone());
        }
    }
    let counts = tensors
        .iter()
        .map(|(name, tensor)| (name.as_str(), elements(tensor)))
        .collect();
    Ok(Weights {
        files,
        size_bytes,
        parameters: count_parameters(&counts, quantization),
        dtype: main_dtype(&tensors),
    })
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let index = folder.join(INDEX);
    let names: BTreeSet<String> = if index.is_file() {
        let text = fs::read(&index).map_err(|error| format!("{INDEX}: {error}"))?;
        let index =
            macmlx_json::parse_python(&text).map_err(|error| format!("{INDEX}: {error}"))?;
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

/// What a weight file's header says, and the bytes of the file, which holds as many as the header
/// says. The values are not read.
fn header(path: &Path) -> Result<(Metadata, u64), String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let file_bytes = file.metadata().map_err(|error| error.to_string())?.len();
    let mut length = [0; 8];
    file.read_exact(&mut length)
        .map_err(|_| "it is empty or cut short")?;
    let header_bytes = u64::from_le_bytes(length);
    if header_bytes > MAX_HEADER_BYTES || header_bytes + 8 > file_bytes {
        return Err("it is not a safetensors file, or is cut short".into());
    }
    let mut text = vec![0; header_bytes as usize];
    file.read_exact(&mut text)
        .map_err(|error| error.to_string())?;
    let header: Metadata =
        serde_json::from_slice(&text).map_err(|error| format!("its header is damaged: {error}"))?;
    let values_bytes = header.data_len() as u64;
    if (header_bytes + 8).saturating_add(values_bytes) > file_bytes {
        return Err("it is cut short".into());
    }
    Ok((header, file_bytes))
}

fn main_dtype(tensors: &BTreeMap<String, TensorInfo>) -> Option<String> {
    let mut counts: BTreeMap<Dtype, u64> = BTreeMap::new();
    for tensor in tensors.values() {
        if tensor.dtype != Dtype::U32 {
            *counts.entry(tensor.dtype).or_default() += elements(tensor);
        }
    }
    let (dtype, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    Some(short_dtype(&dtype.to_string()).to_owned())
}

/// Values of a tensor. Their number is that of the file's bytes at most, as the header was checked.
fn elements(tensor: &TensorInfo) -> u64 {
    tensor.shape.iter().map(|size| *size as u64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"a.weight":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}}"#;

    fn file(header: &str, values_bytes: usize) -> Vec<u8> {
        let length = (header.len() as u64).to_le_bytes();
        [&length[..], header.as_bytes(), &vec![0; values_bytes]].concat()
    }

    fn read(bytes: &[u8]) -> Result<(Metadata, u64), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        fs::write(&path, bytes).unwrap();
        header(&path)
    }

    #[test]
    fn a_header_is_read_without_the_values() {
        let (header, file_bytes) = read(&file(HEADER, 12)).unwrap();
        assert_eq!(file_bytes as usize, 8 + HEADER.len() + 12);
        let tensor = header.info("a.weight").unwrap();
        assert_eq!((tensor.dtype, elements(tensor)), (Dtype::F16, 6));
        // A file may be longer than its tensors.
        assert!(read(&file(HEADER, 20)).is_ok());
    }

    #[test]
    fn files_that_cannot_be_loaded_are_refused_with_the_reason() {
        let damaged = |from: &str, to: &str| file(&HEADER.replace(from, to), 12);
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
        for (bytes, reason) in [
            (Vec::new(), "empty or cut short"),
            (b"abc".to_vec(), "empty or cut short"),
            (
                b"<!DOCTYPE html><html></html>".to_vec(),
                "not a safetensors",
            ),
            (pointer.into(), "not a safetensors"),
            (
                b"GGUF\0\0\0\xff\0\0\0\0\0\0\0\0".to_vec(),
                "not a safetensors",
            ),
            (file(HEADER, 11), "cut short"),
            (file(HEADER, 0), "cut short"),
            (file(HEADER, 12)[..40].to_vec(), "cut short"),
            (file("[]", 0), "header is damaged"),
            (file("{\"a\":", 0), "header is damaged"),
            (damaged("F16", "F17"), "unknown variant `F17`"),
            (
                damaged("[2,3]", "[2,4]"),
                "header is damaged: invalid shape",
            ),
            (
                damaged("[2,3]", "[4294967296,4294967296,2]"),
                "header is damaged: overflow",
            ),
            (
                damaged("[0,12]", "[4,16]"),
                "invalid offset for tensor `a.weight`",
            ),
            (
                damaged("[0,12]", "[12,0]"),
                "invalid offset for tensor `a.weight`",
            ),
        ] {
            let error = read(&bytes).unwrap_err();
            assert!(error.contains(reason), "{reason}: {error}");
        }
    }
}
