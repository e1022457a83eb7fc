//! Headers of safetensors files: read to know a model, written ahead of imported weights.
//!
//! Layout: eight bytes of header length (little-endian), a JSON object of tensors with offsets
//! relative to its end, then the values.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::Path,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longest header that is believed, as the format's own reader has it.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// One tensor as the header describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tensor {
    /// `F16`, `BF16`, `F32`, `U32`, …
    pub dtype: String,
    pub shape: Vec<u64>,
    /// First byte and end, counted from the end of the header.
    pub data_offsets: [u64; 2],
}

impl Tensor {
    pub(crate) fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// A file's tensors and its size.
#[derive(Debug)]
pub(crate) struct Header {
    pub tensors: BTreeMap<String, Tensor>,
    pub file_bytes: u64,
}

/// Reads a header and checks that the file is as long as it says; the error is a reason for a
/// person.
pub(crate) fn read_header(path: &Path) -> Result<Header, String> {
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
    let mut header: Map<String, Value> =
        serde_json::from_slice(&text).map_err(|error| format!("its header is damaged: {error}"))?;
    header.remove("__metadata__");
    let tensors: BTreeMap<String, Tensor> = serde_json::from_value(Value::Object(header))
        .map_err(|error| format!("its header is damaged: {error}"))?;
    let end = tensors.values().map(|tensor| tensor.data_offsets[1]).max();
    if header_bytes + 8 + end.unwrap_or(0) > file_bytes {
        return Err("it is cut short".into());
    }
    Ok(Header {
        tensors,
        file_bytes,
    })
}

/// The bytes ahead of the values: length and header, padded so that values are aligned.
pub(crate) fn header_bytes(tensors: &BTreeMap<String, Tensor>) -> io::Result<Vec<u8>> {
    let mut header = Map::new();
    header.insert("__metadata__".into(), serde_json::json!({"format": "mlx"}));
    for (name, tensor) in tensors {
        header.insert(name.clone(), serde_json::to_value(tensor)?);
    }
    let mut text = serde_json::to_vec(&header)?;
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut text);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn one_tensor() -> BTreeMap<String, Tensor> {
        BTreeMap::from([(
            "a.weight".to_owned(),
            Tensor {
                dtype: "F16".into(),
                shape: vec![2, 3],
                data_offsets: [0, 12],
            },
        )])
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let mut bytes = header_bytes(&one_tensor()).unwrap();
        assert_eq!(bytes.len() % 8, 0);
        bytes.extend([0; 12]);
        fs::write(&path, &bytes).unwrap();
        let header = read_header(&path).unwrap();
        assert_eq!(header.tensors, one_tensor());
        assert_eq!(header.file_bytes, bytes.len() as u64);
    }

    #[test]
    fn short_and_foreign_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let whole = [header_bytes(&one_tensor()).unwrap(), vec![0; 12]].concat();
        for (bytes, reason) in [
            (&b"abc"[..], "cut short"),
            (&b"GGUF\0\0\0\xff\0\0\0\0\0\0\0\0"[..], "not a safetensors"),
            (&whole[..whole.len() - 1], "cut short"),
        ] {
            fs::write(&path, bytes).unwrap();
            assert!(read_header(&path).unwrap_err().contains(reason));
        }
    }
}
