//! Keys and values of every token, quantized.
//!
//! Follows mlx-lm: full precision until `start` tokens are there, then everything is quantized and
//! attention multiplies by the quantized keys and values.

use mlx_rs::{Array, Dtype, error::Exception, ops};

use super::{
    CacheShape, KvQuantization, LayerCache, attention::attend_many, buffer::Buffer, full::FullCache,
};
use crate::{ModelError, Result, compute::Compute};

/// Keeps keys and values in few bits.
#[derive(Debug, Clone)]
pub(super) struct QuantizedCache {
    packing: Packing,
    /// Tokens to reach before quantization starts.
    start: usize,
    store: Store,
    compute: Compute,
}

/// Bits and group size, as MLX counts them.
#[derive(Debug, Clone, Copy)]
struct Packing {
    bits: i32,
    group_size: i32,
}

#[derive(Debug, Clone)]
enum Store {
    Full(FullCache),
    Quantized {
        keys: Packed,
        values: Packed,
        offset: usize,
    },
}

/// Packed words, scales and biases.
#[derive(Debug, Clone, Default)]
struct Packed([Buffer; 3]);

impl QuantizedCache {
    pub(super) fn new(settings: KvQuantization, shape: &CacheShape) -> Result<Self> {
        if !matches!(settings.bits, 2 | 3 | 4 | 5 | 6 | 8) {
            let setting = format!("KV quantization to {} bits", settings.bits);
            return Err(ModelError::unsupported(
                setting,
                "bits are 2, 3, 4, 5, 6 or 8",
            ));
        }
        if !matches!(settings.group_size, 32 | 64 | 128) {
            let setting = format!("KV quantization in groups of {}", settings.group_size);
            return Err(ModelError::unsupported(setting, "groups are 32, 64 or 128"));
        }
        let packing = Packing {
            bits: i32::from(settings.bits),
            group_size: settings.group_size as i32,
        };
        if shape.head_dim % packing.group_size != 0 {
            return Err(ModelError::unsupported(
                format!("KV quantization in groups of {}", settings.group_size),
                format!(
                    "the group must divide this model's head dimension, {}",
                    shape.head_dim
                ),
            ));
        }
        let compute = shape.compute;
        Ok(Self {
            packing,
            start: settings.start,
            store: Store::Full(FullCache::new(compute)),
            compute,
        })
    }

    /// Quantizes what is held once enough tokens are there.
    fn quantize_from_start(&mut self) -> Result<()> {
        let Store::Full(full) = &self.store else {
            return Ok(());
        };
        if full.offset() < self.start {
            return Ok(());
        }
        let Some((all_keys, all_values)) = full.buffers() else {
            return Ok(());
        };
        let (mut keys, mut values) = (Packed::default(), Packed::default());
        keys.append(0, all_keys, self.packing)?;
        values.append(0, all_values, self.packing)?;
        self.store = Store::Quantized {
            keys,
            values,
            offset: full.offset(),
        };
        Ok(())
    }
}

impl Packed {
    /// Quantizes and writes `rows` from row `start` on; returns everything up to their end.
    fn append(&mut self, start: i32, rows: &Array, packing: Packing) -> Result<[Array; 3]> {
        let Packing { bits, group_size } = packing;
        let (words, scales, biases) = ops::quantize(rows, group_size, bits)?;
        let [all_words, all_scales, all_biases] = &mut self.0;
        Ok([
            all_words.append(start, &words)?,
            all_scales.append(start, &scales)?,
            all_biases.append(start, &biases)?,
        ])
    }

    fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.0.iter().filter_map(Buffer::array)
    }
}

impl LayerCache for QuantizedCache {
    fn attend(&mut self, queries: &Array, keys: Array, values: Array, scale: f32) -> Result<Array> {
        let packing = self.packing;
        match &mut self.store {
            Store::Full(full) => {
                let answer = full.attend(queries, keys, values, scale)?;
                self.quantize_from_start()?;
                Ok(answer)
            }
            Store::Quantized {
                keys: all_keys,
                values: all_values,
                offset,
            } => {
                let start = *offset as i32;
                let keys = all_keys.append(start, &keys, packing)?;
                let values = all_values.append(start, &values, packing)?;
                *offset += queries.dim(2) as usize;
                if self
                    .compute
                    .blas_rows
                    .is_some_and(|rows| queries.dim(2) >= rows)
                {
                    let dense = |[words, scales, biases]: &[Array; 3]| {
                        ops::dequantize(words, scales, biases, packing.group_size, packing.bits)
                    };
                    return attend_many(queries, &dense(&keys)?, &dense(&values)?, scale, None);
                }
                attend(queries, &keys, &values, scale, packing)
            }
        }
    }

    fn offset(&self) -> usize {
        match &self.store {
            Store::Full(full) => full.offset(),
            Store::Quantized { offset, .. } => *offset,
        }
    }

    fn trim(&mut self, count: usize) -> bool {
        match &mut self.store {
            Store::Full(full) => full.trim(count),
            Store::Quantized { offset, .. } => {
                let Some(left) = offset.checked_sub(count) else {
                    return false;
                };
                *offset = left;
                true
            }
        }
    }

    fn size_bytes(&self) -> usize {
        match &self.store {
            Store::Full(full) => full.size_bytes(),
            Store::Quantized { keys, values, .. } => {
                keys.0.iter().chain(&values.0).map(Buffer::size_bytes).sum()
            }
        }
    }

    fn arrays(&self) -> Vec<&Array> {
        match &self.store {
            Store::Full(full) => full.arrays(),
            Store::Quantized { keys, values, .. } => keys.arrays().chain(values.arrays()).collect(),
        }
    }

    fn duplicate(&self) -> Box<dyn LayerCache> {
        Box::new(self.clone())
    }
}

/// Causal attention by quantized products. Query heads that share keys are one more axis, so that
/// keys are not repeated.
fn attend(
    queries: &Array,
    keys: &[Array; 3],
    values: &[Array; 3],
    scale: f32,
    Packing { bits, group_size }: Packing,
) -> Result<Array> {
    let (heads, length, dim) = (queries.dim(1), queries.dim(2), queries.dim(3));
    let [words, ..] = keys;
    let (kv, total) = (words.dim(1), words.dim(2));
    let grouped = queries.multiply(Array::from_f32(scale).as_dtype(queries.dtype())?)?;
    let grouped = grouped.reshape(&[1, kv, heads / kv, length, dim])?;
    let [words, scales, biases] = per_group(keys)?;
    let mut scores =
        ops::quantized_matmul(grouped, words, scales, &biases, true, group_size, bits)?;
    if length > 1 {
        let at = ops::arange::<i32, i32>(total - length, total, None)?.reshape(&[length, 1])?;
        let sees = at.ge(ops::arange::<i32, i32>(None, total, None)?)?;
        let lowest = lowest(scores.dtype())?.as_dtype(scores.dtype())?;
        scores = ops::select(sees, scores, lowest)?;
    }
    let weights = ops::softmax_axis(scores, -1, true)?;
    let [words, scales, biases] = per_group(values)?;
    let answer = ops::quantized_matmul(weights, words, scales, &biases, false, group_size, bits)?;
    Ok(answer.reshape(&[1, heads, length, dim])?)
}

/// `[1, kv_heads, rows, features]` to `[1, kv_heads, 1, rows, features]`.
fn per_group(packed: &[Array; 3]) -> Result<[Array; 3]> {
    let [words, scales, biases] = packed;
    Ok([
        words.expand_dims(2)?,
        scales.expand_dims(2)?,
        biases.expand_dims(2)?,
    ])
}

/// The lowest finite number of `dtype`.
fn lowest(dtype: Dtype) -> Result<Array> {
    let lowest = match dtype {
        Dtype::Float16 => -65_504.0,
        // The largest float32 rounds up to infinity in bfloat16.
        Dtype::Bfloat16 => f32::from_bits(0xff7f_0000),
        Dtype::Float32 => f32::MIN,
        other => return Err(Exception::custom(format!("scores cannot be {other:?}")).into()),
    };
    Ok(Array::from_f32(lowest))
}
