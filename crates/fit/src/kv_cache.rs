//! How much the KV cache of one sequence takes.

use crate::{
    machine::Machine,
    shape::{Layer, Shape, product},
};

/// Affine quantization of keys and values. Layers with a sliding window are small and stay in the
/// compute dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvQuantization {
    /// Bits of a value.
    pub bits: u8,
    /// Values that share a scale and a bias; must divide the head dimension.
    pub group_size: u32,
    /// Tokens to reach before quantization starts; it then covers all of them.
    pub start: usize,
}

/// Caches grow by so many tokens.
const STEP: u64 = 256;

/// Bytes of all layers once `tokens` are in them.
pub(crate) fn bytes(shape: &Shape, tokens: u32, machine: &Machine) -> u64 {
    let rows = u64::from(tokens).next_multiple_of(STEP);
    let plain = shape.value_bytes(machine.precision);
    let quantization = machine
        .kv_quantization
        .filter(|how| tokens as usize >= how.start);
    shape
        .layers
        .iter()
        .map(|layer| match *layer {
            Layer::Full { values } => full_bytes(product(&[rows, values]), plain, quantization),
            // These stay in the compute dtype.
            Layer::Window { values, tokens } => {
                product(&[rows.min(tokens.next_multiple_of(STEP)), values, plain])
            }
            Layer::Constant { values } => values.saturating_mul(4),
            Layer::Shared => 0,
        })
        .fold(0, u64::saturating_add)
}

fn full_bytes(values: u64, plain: u64, quantization: Option<KvQuantization>) -> u64 {
    match quantization {
        None => values.saturating_mul(plain),
        Some(how) => {
            let packed = values / 8 * u64::from(how.bits);
            packed.saturating_add(values / u64::from(how.group_size.max(1)) * 2 * plain)
        }
    }
}
