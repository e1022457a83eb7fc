//! How much the KV cache of one sequence takes.

use super::{
    machine::Machine,
    shape::{Layer, Shape, product},
};

/// Caches grow by so many tokens.
const STEP: u64 = 256;

/// Bytes of all layers once `tokens` are in them.
pub(super) fn bytes(shape: &Shape, tokens: u32, machine: &Machine) -> u64 {
    let rows = u64::from(tokens).next_multiple_of(STEP);
    let plain = machine.compute.value_bytes(shape);
    shape
        .layers
        .iter()
        .map(|layer| match *layer {
            Layer::Full { values } => full_bytes(product(&[rows, values]), plain, machine),
            // These stay in the compute dtype.
            Layer::Window { values, tokens } => {
                product(&[rows.min(tokens.next_multiple_of(STEP)), values, plain])
            }
            Layer::Constant { values } => values.saturating_mul(4),
            Layer::Shared => 0,
        })
        .fold(0, u64::saturating_add)
}

fn full_bytes(values: u64, plain: u64, machine: &Machine) -> u64 {
    match machine.kv_quantization {
        None => values.saturating_mul(plain),
        Some(how) => {
            let packed = values / 8 * u64::from(how.bits);
            packed.saturating_add(values / u64::from(how.group_size.max(1)) * 2 * plain)
        }
    }
}
