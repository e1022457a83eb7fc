//! Weights from a GGUF file into safetensors shards, a few megabytes in memory at a time.

use std::{
    collections::HashMap,
    fs::File,
    io,
    ops::ControlFlow,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use safetensors::tensor::{Metadata, TensorInfo};
use serde_json::{Map, json};

use crate::{
    Error, Progress,
    architecture::{Heads, Undo},
    config::HeadCounts,
    header::{Kind, Tensor},
    plan::{Float, Form, Item, Output},
    repack,
};

/// Upper bound of a weight file, as mlx-lm has it.
pub(crate) const SHARD_BYTES: u64 = 5 << 30;
/// Aim for one read; whole rows (and heads, where rows move) may need more.
const CHUNK_BYTES: u64 = 4 << 20;

/// Writes the weight files of a model folder, and their index when there are several.
pub(crate) struct Writer<'a> {
    pub source: &'a File,
    pub source_path: &'a Path,
    pub folder: &'a Path,
    pub heads: HeadCounts,
    pub shard_bytes: u64,
}

impl Writer<'_> {
    pub(crate) fn write(
        &self,
        items: &[Item],
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let size = |item: &Item| {
            item.outputs()
                .iter()
                .map(|output| output.bytes)
                .sum::<u64>()
        };
        let total_bytes: u64 = items.iter().map(size).sum();
        let mut shards: Vec<Vec<&Item>> = Vec::new();
        let mut room = 0;
        for item in items {
            match shards.last_mut() {
                Some(shard) if size(item) <= room => {
                    shard.push(item);
                    room -= size(item);
                }
                _ => {
                    shards.push(vec![item]);
                    room = self.shard_bytes.saturating_sub(size(item));
                }
            }
        }
        let mut done_bytes = 0;
        let mut index = Map::new();
        for (number, shard) in shards.iter().enumerate() {
            let name = match shards.len() {
                1 => "model.safetensors".to_owned(),
                count => format!("model-{:05}-of-{count:05}.safetensors", number + 1),
            };
            let path = self.folder.join(&name);
            for output in shard.iter().flat_map(|item| item.outputs()) {
                index.insert(output.name, json!(name));
            }
            self.shard(&path, shard, &mut |bytes| {
                done_bytes += bytes;
                progress(Progress {
                    done_bytes,
                    total_bytes,
                })
            })?;
        }
        if shards.len() > 1 {
            let path = self.folder.join("model.safetensors.index.json");
            let text = json!({"metadata": {"total_size": total_bytes}, "weight_map": index});
            std::fs::write(&path, format!("{text:#}")).map_err(Error::io(path))?;
        }
        Ok(())
    }

    fn shard(
        &self,
        path: &Path,
        items: &[&Item],
        written: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let header =
            header(items.iter().flat_map(|item| item.outputs())).map_err(Error::io(path))?;
        let file = File::create_new(path).map_err(Error::io(path))?;
        let target = Target {
            file: &file,
            path: path.to_path_buf(),
        };
        target.put(&header, 0)?;
        let mut position = header.len() as u64;
        for item in items {
            let outputs = item.outputs();
            self.item(item, &target, position)?;
            let bytes = outputs.iter().map(|output| output.bytes).sum::<u64>();
            position += bytes;
            if written(bytes).is_break() {
                return Err(Error::Stopped);
            }
        }
        file.sync_all().map_err(Error::io(path))
    }

    fn item(&self, item: &Item, target: &Target<'_>, position: u64) -> Result<(), Error> {
        // One cursor for each output, in the order of `Item::outputs`.
        let mut cursors: Vec<u64> = item
            .outputs()
            .iter()
            .scan(position, |start, output| {
                let here = *start;
                *start += output.bytes;
                Some(here)
            })
            .collect();
        let mut put = |output: usize, bytes: &[u8]| {
            target.put(bytes, cursors[output])?;
            cursors[output] += bytes.len() as u64;
            Ok::<(), Error>(())
        };
        self.rows(item, &mut |rows| match item.form {
            Form::Float(float) => match item.source.kind {
                Kind::F32 => put(
                    0,
                    &repack::floats(&repack::singles(rows, item.target.undo), float),
                ),
                _ => put(0, rows),
            },
            Form::Affine { .. } => {
                let packed = repack::affine(item.source.kind, rows).map_err(|_| Error::Scale {
                    tensor: item.source.name.clone(),
                })?;
                put(0, &packed.weight)?;
                put(1, &packed.scales)?;
                put(2, &packed.biases)
            }
        })
    }

    /// Calls back with the rows of a tensor, in the order of the MLX checkpoint.
    fn rows(
        &self,
        item: &Item,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let misfit = || Error::Shape {
            tensor: item.source.name.clone(),
            shape: item.source.shape.clone(),
        };
        let (block_values, block_bytes) = item.source.kind.block().ok_or_else(misfit)?;
        let row_bytes = item.row_values() / block_values * block_bytes;
        if row_bytes == 0 {
            return Err(misfit());
        }
        let head_rows = match item.target.undo {
            Undo::InterleavedHeads { heads } => {
                let heads = match heads {
                    Heads::Query => self.heads.query,
                    Heads::KeyValue => self.heads.key_value,
                };
                if !item.rows().is_multiple_of(heads * 2) {
                    return Err(misfit());
                }
                Some(item.rows() / heads)
            }
            Undo::Nothing | Undo::AddedOne => None,
        };
        let step = head_rows.unwrap_or_else(|| (CHUNK_BYTES / row_bytes).max(1));
        let mut row = 0;
        while row < item.rows() {
            let count = step.min(item.rows() - row);
            let mut bytes = vec![0; (count * row_bytes) as usize];
            read(self.source, &item.source, row * row_bytes, &mut bytes)
                .map_err(Error::io(self.source_path))?;
            if head_rows.is_some() {
                bytes = repack::uninterleave(&bytes, row_bytes as usize);
            }
            each(&bytes)?;
            row += count;
        }
        Ok(())
    }
}

/// The bytes ahead of the values of a weight file that holds `outputs` in their order: the header's
/// length and the header, padded so that the values are aligned.
fn header(outputs: impl Iterator<Item = Output>) -> io::Result<Vec<u8>> {
    let mut end = 0;
    let tensors = outputs
        .map(|output| {
            let start = end;
            end += output.bytes as usize;
            let tensor = TensorInfo {
                dtype: output.dtype,
                shape: output.shape.iter().map(|size| *size as usize).collect(),
                data_offsets: (start, end),
            };
            (output.name, tensor)
        })
        .collect();
    let made_for = HashMap::from([("format".to_owned(), "mlx".to_owned())]);
    let header = Metadata::new(Some(made_for), tensors).map_err(io::Error::other)?;
    let mut text = serde_json::to_vec(&header)?;
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut text);
    Ok(bytes)
}

/// Stores vectors in the type of the matrices where that loses nothing: MLX computes in the widest
/// type it meets, and one single-precision norm would make a whole model slow.
pub(crate) fn narrow_vectors(source: &File, items: &mut [Item], compute: Float) -> io::Result<()> {
    for item in items {
        if item.form != Form::Float(Float::F32) || item.source.shape.len() != 1 {
            continue;
        }
        if repack::fits(&vector(source, &item.source, item.target.undo)?, compute) {
            item.form = Form::Float(compute);
        }
    }
    Ok(())
}

/// All values of a single-precision vector.
pub(crate) fn vector(source: &File, tensor: &Tensor, undo: Undo) -> io::Result<Vec<f32>> {
    let mut bytes = vec![0; tensor.shape.iter().product::<u64>() as usize * 4];
    read(source, tensor, 0, &mut bytes)?;
    Ok(repack::singles(&bytes, undo))
}

fn read(source: &File, tensor: &Tensor, at: u64, buffer: &mut [u8]) -> io::Result<()> {
    source.read_exact_at(buffer, tensor.offset + at)
}

struct Target<'a> {
    file: &'a File,
    path: PathBuf,
}

impl Target<'_> {
    fn put(&self, bytes: &[u8], at: u64) -> Result<(), Error> {
        self.file
            .write_all_at(bytes, at)
            .map_err(Error::io(&self.path))
    }
}
