//! How much the weights take once they are loaded.

use serde_json::Value;

use super::machine::Compute;

/// What is known of a model's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredWeights {
    /// Of the weight files.
    pub size_bytes: u64,
    /// Values of the model as it was made; `None` where nobody counted them.
    pub parameters: Option<u64>,
}

/// How weights are packed.
struct Packing {
    bits: u64,
    /// Bytes of scales and biases for each group.
    group_bytes: u64,
    group_size: u64,
}

pub(super) fn held_bytes(config: &Value, stored: StoredWeights, compute: Compute) -> u64 {
    let Compute::Float32 {
        dequantize_budget_bytes,
    } = compute
    else {
        return stored.size_bytes;
    };
    let packing = packing(config);
    let parameters = stored
        .parameters
        .unwrap_or_else(|| counted(stored.size_bytes, config, packing.as_ref()));
    let float32_bytes = parameters.saturating_mul(4);
    match packing {
        Some(packing) if float32_bytes > dequantize_budget_bytes => {
            // Words stay packed; what is not, scales above all, goes from two bytes to four.
            let packed = parameters.saturating_mul(packing.bits) / 8;
            let rest = stored.size_bytes.saturating_sub(packed);
            packed.min(stored.size_bytes) + 2 * rest
        }
        _ => float32_bytes,
    }
}

fn packing(config: &Value) -> Option<Packing> {
    let section = match &config["quantization"] {
        Value::Null => &config["quantization_config"],
        section => section,
    };
    let bits = section["bits"]
        .as_u64()
        .filter(|bits| (1..=16).contains(bits))?;
    let group_size = section["group_size"]
        .as_u64()
        .unwrap_or(64)
        .clamp(1, 1 << 20);
    let group_bytes = match section["mode"].as_str() {
        None | Some("affine") => 4,
        Some(_) => 1,
    };
    Some(Packing {
        bits,
        group_bytes,
        group_size,
    })
}

/// Parameters that take so many bytes.
fn counted(size_bytes: u64, config: &Value, packing: Option<&Packing>) -> u64 {
    let dtype = match &config["torch_dtype"] {
        Value::Null => &config["dtype"],
        dtype => dtype,
    };
    let bytes = match packing {
        Some(packing) => {
            packing.bits as f64 / 8.0 + packing.group_bytes as f64 / packing.group_size as f64
        }
        None if dtype == "float32" => 4.0,
        None => 2.0,
    };
    (size_bytes as f64 / bytes) as u64
}
