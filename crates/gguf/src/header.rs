//! The front part of a GGUF file: metadata and where each tensor lies.
//!
//! Layout: magic, version, counts, key-value pairs, tensor descriptions, padding, values. All
//! little-endian. Source: the GGUF specification of ggml.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufReader, ErrorKind, Read},
    path::Path,
};

use crate::{
    Error,
    metadata::{Metadata, Value},
};

/// Strings, arrays and counts above this are taken for damage rather than allocated.
const MAX_LENGTH: u64 = 1 << 28;
/// Values that memory is set aside for ahead of reading them, however many are announced.
const MAX_PREALLOCATED: u64 = 1 << 16;
const MAX_DIMENSIONS: u32 = 4;
const MAX_ARRAY_DEPTH: u32 = 2;
const DEFAULT_ALIGNMENT: u64 = 32;

/// Everything ahead of the values.
#[derive(Debug)]
pub(crate) struct Header {
    pub metadata: Metadata,
    pub tensors: Vec<Tensor>,
}

/// One tensor in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub name: String,
    /// Rows first, as MLX has it; GGUF writes the fastest dimension first.
    pub shape: Vec<u64>,
    pub kind: Kind,
    /// First byte, from the start of the file.
    pub offset: u64,
}

/// How a tensor's values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q8_0,
    /// ggml's number of a type that is not imported.
    Other(u32),
}

impl Kind {
    fn from_number(number: u32) -> Self {
        match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            8 => Self::Q8_0,
            30 => Self::Bf16,
            other => Self::Other(other),
        }
    }

    /// Values and bytes of one block; `None` for types that are not imported.
    pub(crate) fn block(self) -> Option<(u64, u64)> {
        match self {
            Self::F32 => Some((1, 4)),
            Self::F16 | Self::Bf16 => Some((1, 2)),
            Self::Q4_0 => Some((32, 18)),
            Self::Q4_1 => Some((32, 20)),
            Self::Q8_0 => Some((32, 34)),
            Self::Other(_) => None,
        }
    }

    /// ggml's name.
    pub(crate) fn name(self) -> String {
        let name = match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q8_0 => "Q8_0",
            Self::Other(number) => match number {
                6 => "Q5_0",
                7 => "Q5_1",
                9 => "Q8_1",
                10 => "Q2_K",
                11 => "Q3_K",
                12 => "Q4_K",
                13 => "Q5_K",
                14 => "Q6_K",
                15 => "Q8_K",
                16 => "IQ2_XXS",
                17 => "IQ2_XS",
                18 => "IQ3_XXS",
                19 => "IQ1_S",
                20 => "IQ4_NL",
                21 => "IQ3_S",
                22 => "IQ2_S",
                23 => "IQ4_XS",
                24 => "I8",
                25 => "I16",
                26 => "I32",
                27 => "I64",
                28 => "F64",
                29 => "IQ1_M",
                34 => "TQ1_0",
                35 => "TQ2_0",
                39 => "MXFP4",
                40 => "NVFP4",
                unknown => return format!("type {unknown}"),
            },
        };
        name.to_owned()
    }
}

/// Reads and checks everything ahead of the values.
pub(crate) fn read(path: &Path) -> Result<Header, Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    let file_bytes = file.metadata().map_err(Error::io(path))?.len();
    let mut source = Source {
        path,
        reader: BufReader::with_capacity(1 << 20, file),
        position: 0,
    };
    let mut magic = [0; 4];
    if source.fill(&mut magic).is_err() || &magic != b"GGUF" {
        return Err(Error::NotGguf { path: path.into() });
    }
    let version = source.u32()?;
    if !(2..=3).contains(&version) {
        return Err(Error::Version(version));
    }
    let tensor_count = source.length()?;
    let key_count = source.length()?;
    let mut values = HashMap::new();
    for _ in 0..key_count {
        let key = source.string()?;
        let number = source.u32()?;
        let value = source.value(number, 0)?;
        values.insert(key, value);
    }
    let metadata = Metadata::new(values);
    let mut tensors = Vec::with_capacity(tensor_count.min(MAX_PREALLOCATED) as usize);
    for _ in 0..tensor_count {
        tensors.push(source.tensor()?);
    }
    let alignment = match metadata.get("general.alignment") {
        Some(value) => value
            .as_u64()
            .filter(|alignment| alignment.is_power_of_two())
            .ok_or_else(|| Error::Damaged("its alignment is not a power of two".into()))?,
        None => DEFAULT_ALIGNMENT,
    };
    let data = source.position.next_multiple_of(alignment);
    for tensor in &mut tensors {
        tensor.offset = place(tensor, data, file_bytes)?;
    }
    Ok(Header { metadata, tensors })
}

/// A tensor's first byte in the file, checked to lie inside with all its values.
fn place(tensor: &Tensor, data: u64, file_bytes: u64) -> Result<u64, Error> {
    let beyond = || Error::Damaged(format!("tensor `{}` lies beyond its end", tensor.name));
    let offset = data.checked_add(tensor.offset).ok_or_else(beyond)?;
    let size = match tensor.kind.block() {
        None => 0,
        Some((values, bytes)) => {
            let count = tensor
                .shape
                .iter()
                .try_fold(1_u64, |count, &size| count.checked_mul(size))
                .ok_or_else(beyond)?;
            if tensor.shape.last().is_some_and(|row| row % values != 0) {
                return Err(Error::Shape {
                    tensor: tensor.name.clone(),
                    shape: tensor.shape.clone(),
                });
            }
            (count / values).checked_mul(bytes).ok_or_else(beyond)?
        }
    };
    match offset.checked_add(size) {
        Some(end) if end <= file_bytes => Ok(offset),
        _ => Err(beyond()),
    }
}

struct Source<'a> {
    path: &'a Path,
    reader: BufReader<File>,
    position: u64,
}

impl Source<'_> {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        self.reader
            .read_exact(buffer)
            .map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => Error::Damaged("it ends in its header".into()),
                _ => Error::io(self.path)(error),
            })?;
        self.position += buffer.len() as u64;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut buffer = [0; N];
        self.fill(&mut buffer)?;
        Ok(buffer)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn length(&mut self) -> Result<u64, Error> {
        let length = self.u64()?;
        if length > MAX_LENGTH {
            return Err(Error::Damaged(format!("a length of {length}")));
        }
        Ok(length)
    }

    fn string(&mut self) -> Result<String, Error> {
        let length = self.length()?;
        // Reading through `take` allocates what is there, not what is announced.
        let mut bytes = Vec::new();
        let read = (&mut self.reader)
            .take(length)
            .read_to_end(&mut bytes)
            .map_err(Error::io(self.path))?;
        self.position += read as u64;
        if (read as u64) < length {
            return Err(Error::Damaged("it ends in its header".into()));
        }
        String::from_utf8(bytes).map_err(|_| Error::Damaged("a string is not UTF-8".into()))
    }

    fn value(&mut self, number: u32, depth: u32) -> Result<Value, Error> {
        Ok(match number {
            0 => Value::Unsigned(u64::from(self.array::<1>()?[0])),
            1 => Value::Signed(i64::from(i8::from_le_bytes(self.array()?))),
            2 => Value::Unsigned(u64::from(u16::from_le_bytes(self.array()?))),
            3 => Value::Signed(i64::from(i16::from_le_bytes(self.array()?))),
            4 => Value::Unsigned(u64::from(self.u32()?)),
            5 => Value::Signed(i64::from(i32::from_le_bytes(self.array()?))),
            6 => Value::Float(shortest(f32::from_le_bytes(self.array()?))),
            7 => Value::Bool(self.array::<1>()?[0] != 0),
            8 => Value::String(self.string()?),
            9 if depth < MAX_ARRAY_DEPTH => {
                let element = self.u32()?;
                let count = self.length()?;
                let mut items = Vec::with_capacity(count.min(MAX_PREALLOCATED) as usize);
                for _ in 0..count {
                    items.push(self.value(element, depth + 1)?);
                }
                Value::Array(items)
            }
            10 => Value::Unsigned(self.u64()?),
            11 => Value::Signed(i64::from_le_bytes(self.array()?)),
            12 => Value::Float(f64::from_le_bytes(self.array()?)),
            other => return Err(Error::Damaged(format!("a value of type {other}"))),
        })
    }

    fn tensor(&mut self) -> Result<Tensor, Error> {
        let name = self.string()?;
        let dimensions = self.u32()?;
        if dimensions == 0 || dimensions > MAX_DIMENSIONS {
            return Err(Error::Damaged(format!(
                "tensor `{name}` has {dimensions} dimensions"
            )));
        }
        let mut shape = Vec::with_capacity(dimensions as usize);
        for _ in 0..dimensions {
            shape.push(self.u64()?);
        }
        shape.reverse();
        Ok(Tensor {
            name,
            shape,
            kind: Kind::from_number(self.u32()?),
            offset: self.u64()?,
        })
    }
}

/// A single as the shortest decimal that means it: 1e-5 stays 1e-5.
fn shortest(single: f32) -> f64 {
    single
        .to_string()
        .parse()
        .unwrap_or_else(|_| f64::from(single))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Header, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        fs::write(&path, bytes).unwrap();
        read(&path)
    }

    fn header(version: u32, tensors: u64, keys: u64) -> Vec<u8> {
        [
            &b"GGUF"[..],
            &version.to_le_bytes(),
            &tensors.to_le_bytes(),
            &keys.to_le_bytes(),
        ]
        .concat()
    }

    #[test]
    fn foreign_old_and_damaged_files_are_told_apart() {
        assert!(matches!(read_bytes(b"PK"), Err(Error::NotGguf { .. })));
        assert!(matches!(
            read_bytes(&header(1, 0, 0)),
            Err(Error::Version(1))
        ));
        assert!(matches!(
            read_bytes(&header(3, 1, 0)),
            Err(Error::Damaged(_))
        ));
        assert!(matches!(
            read_bytes(&header(3, u64::MAX, 0)),
            Err(Error::Damaged(_))
        ));
        assert!(read_bytes(&header(3, 0, 0)).unwrap().tensors.is_empty());
    }

    #[test]
    fn a_tensor_beyond_the_end_is_damage() {
        let mut bytes = header(3, 1, 0);
        bytes.extend(1_u64.to_le_bytes());
        bytes.push(b'x');
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend((u64::MAX / 2).to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        assert!(matches!(read_bytes(&bytes), Err(Error::Damaged(_))));
    }

    #[test]
    fn singles_become_the_decimals_they_came_from() {
        assert_eq!(shortest(1e-5).to_string(), "0.00001");
        assert_eq!(shortest(1_000_000.0).to_string(), "1000000");
    }
}
