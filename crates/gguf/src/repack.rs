//! Values of GGUF as values of MLX, a run of rows at a time.
//!
//! MLX's affine form stores value `i` as `scale * q + bias` with unsigned `q` packed lowest bits
//! first. ggml's blocks of 32 store `d * (q - 8)` (`Q4_0`), `d * q + m` (`Q4_1`) with the first half
//! of a block in the low nibbles, and `d * q` with signed `q` (`Q8_0`).

use half::{bf16, f16};

use crate::{architecture::Undo, header::Kind, plan::Float};

/// A scale whose bias is not a half-precision number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inexact;

/// Bytes of `weight`, `scales` and `biases`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Affine {
    pub weight: Vec<u8>,
    pub scales: Vec<u8>,
    pub biases: Vec<u8>,
}

/// Repacks whole blocks; other kinds than the three quantized ones give nothing.
pub(crate) fn affine(kind: Kind, bytes: &[u8]) -> Result<Affine, Inexact> {
    let mut packed = Affine::default();
    match kind {
        Kind::Q4_0 => {
            for block in bytes.as_chunks::<18>().0 {
                let scale = half_at(block, 0);
                packed.push_scale(scale, offset(scale, -8.0)?);
                packed.push_nibbles(&block[2..]);
            }
        }
        Kind::Q4_1 => {
            for block in bytes.as_chunks::<20>().0 {
                packed.push_scale(half_at(block, 0), half_at(block, 2));
                packed.push_nibbles(&block[4..]);
            }
        }
        Kind::Q8_0 => {
            for block in bytes.as_chunks::<34>().0 {
                let scale = half_at(block, 0);
                packed.push_scale(scale, offset(scale, -128.0)?);
                // Signed to unsigned with 128 added.
                packed.weight.extend(block[2..].iter().map(|q| q ^ 0x80));
            }
        }
        Kind::F32 | Kind::F16 | Kind::Bf16 | Kind::Other(_) => {}
    }
    Ok(packed)
}

impl Affine {
    fn push_scale(&mut self, scale: f16, bias: f16) {
        self.scales.extend(scale.to_le_bytes());
        self.biases.extend(bias.to_le_bytes());
    }

    /// From values `i` and `i + 16` in one byte to neighbours in one byte.
    fn push_nibbles(&mut self, halves: &[u8]) {
        for shift in [0, 4] {
            for pair in halves.as_chunks::<2>().0 {
                let low = pair[0] >> shift & 15;
                let high = pair[1] >> shift & 15;
                self.weight.push(low | high << 4);
            }
        }
    }
}

fn half_at(block: &[u8], at: usize) -> f16 {
    f16::from_le_bytes([block[at], block[at + 1]])
}

/// `factor * scale`, where that is a number of half precision.
fn offset(scale: f16, factor: f32) -> Result<f16, Inexact> {
    let exact = factor * scale.to_f32();
    let bias = f16::from_f32(exact);
    if is_same(bias.to_f32(), exact) {
        Ok(bias)
    } else {
        Err(Inexact)
    }
}

/// Whether a number survived; what is no number never does.
fn is_same(narrowed: f32, value: f32) -> bool {
    value.is_finite() && narrowed.to_bits() == value.to_bits()
}

/// Puts the rows of heads back in order: ggml pairs row `j` with row `j + half` of a head.
pub(crate) fn uninterleave(head: &[u8], row_bytes: usize) -> Vec<u8> {
    let rows = head.len() / row_bytes;
    let half = rows / 2;
    let mut ordered = Vec::with_capacity(head.len());
    for row in 0..rows {
        let from = if row < half {
            2 * row
        } else {
            2 * (row - half) + 1
        };
        ordered.extend_from_slice(&head[from * row_bytes..][..row_bytes]);
    }
    ordered
}

/// Single-precision values with their change undone.
pub(crate) fn singles(bytes: &[u8], undo: Undo) -> Vec<f32> {
    let subtrahend = match undo {
        Undo::AddedOne => 1.0,
        Undo::Nothing | Undo::InterleavedHeads { .. } => 0.0,
    };
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes) - subtrahend)
        .collect()
}

/// Whether every value is a number of that type.
pub(crate) fn fits(values: &[f32], float: Float) -> bool {
    values.iter().all(|&value| match float {
        Float::F32 => true,
        Float::F16 => is_same(f16::from_f32(value).to_f32(), value),
        Float::Bf16 => is_same(bf16::from_f32(value).to_f32(), value),
    })
}

/// Little-endian bytes of values in that type.
pub(crate) fn floats(values: &[f32], float: Float) -> Vec<u8> {
    match float {
        Float::F32 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Float::F16 => values
            .iter()
            .flat_map(|&v| f16::from_f32(v).to_le_bytes())
            .collect(),
        Float::Bf16 => values
            .iter()
            .flat_map(|&v| bf16::from_f32(v).to_le_bytes())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nibbles_come_out_in_order() {
        // Value i is i mod 16: the first sixteen in the low nibbles, the rest in the high ones.
        let mut block = f16::from_f32(0.5).to_le_bytes().to_vec();
        block.extend((0..16_u8).map(|i| i | i << 4));
        let packed = affine(Kind::Q4_0, &block).unwrap();
        let values: Vec<u8> = packed
            .weight
            .iter()
            .flat_map(|byte| [byte & 15, byte >> 4])
            .collect();
        let expected: Vec<u8> = (0..16).chain(0..16).collect();
        assert_eq!(values, expected);
        assert_eq!(packed.biases, f16::from_f32(-4.0).to_le_bytes());
    }

    #[test]
    fn a_scale_beyond_half_precision_is_refused() {
        let mut block = f16::from_f32(10_000.0).to_le_bytes().to_vec();
        block.resize(34, 0);
        assert_eq!(affine(Kind::Q8_0, &block), Err(Inexact));
    }

    #[test]
    fn interleaved_rows_return_to_their_places() {
        // ggml's order of a head with rows 0..6 is 0 3 1 4 2 5.
        assert_eq!(uninterleave(&[0, 3, 1, 4, 2, 5], 1), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn narrowing_only_without_loss() {
        assert!(fits(&[1.5, -0.25], Float::F16));
        assert!(!fits(&[1.0001], Float::Bf16));
        assert!(!fits(&[1e30], Float::F16));
        assert!(!fits(&[f32::NAN], Float::F16));
    }
}
