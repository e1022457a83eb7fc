//! How much the weights of a model are, in values and in bytes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Quantization,
    holding::{Holding, Precision, float32_bytes},
    shape::stored_value_bytes,
};

/// What is known of a model's weight files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredWeights {
    /// Bytes of the files.
    pub size_bytes: u64,
    /// Values of the model as it was made; `None` where they are not counted.
    pub parameters: Option<u64>,
}

impl StoredWeights {
    /// How a machine holds these weights, and in how many bytes. `config` is the model's
    /// `config.json`.
    pub fn held(self, config: &Value, precision: Precision) -> (Holding, u64) {
        let quantization = Quantization::of(config);
        let parameters = self.parameters(config, &quantization);
        let holding = Holding::of(precision, quantization.is_quantized(), parameters);
        let bytes = match holding {
            Holding::AsStored => self.size_bytes,
            Holding::Float32 | Holding::Dequantized => float32_bytes(parameters),
            Holding::Packed => {
                // What is not packed, scales above all, goes from two bytes to four.
                let bits = quantization.bits().unwrap_or_default();
                let packed = (parameters.saturating_mul(bits) / 8).min(self.size_bytes);
                packed.saturating_add((self.size_bytes - packed).saturating_mul(2))
            }
        };
        (holding, bytes)
    }

    /// The parameters, or as many as take these bytes.
    fn parameters(self, config: &Value, quantization: &Quantization) -> u64 {
        self.parameters.unwrap_or_else(|| {
            let bytes = quantization
                .bytes_per_value()
                .unwrap_or(stored_value_bytes(config) as f64);
            (self.size_bytes as f64 / bytes) as u64
        })
    }
}

/// Counts the values of a model as it was made, from the tensors of its files (name and elements):
/// each scale of a quantized layer stands for its group.
pub fn count_parameters(tensors: &BTreeMap<&str, u64>, quantization: &Quantization) -> u64 {
    let is_quantized = |layer: &str| tensors.contains_key(format!("{layer}.scales").as_str());
    tensors
        .iter()
        .map(|(name, elements)| match name.rsplit_once('.') {
            Some((layer, "scales")) => elements.saturating_mul(quantization.group_size(layer)),
            Some((layer, "weight" | "biases")) if is_quantized(layer) => 0,
            _ => *elements,
        })
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scales_stand_for_their_groups() {
        let quantization = Quantization::of(&json!({
            "quantization": {"bits": 4, "group_size": 64, "lm_head": {"bits": 8, "group_size": 32}}
        }));
        let tensors = BTreeMap::from([
            // 128 rows of 256 values.
            ("layer.weight", 128 * 256 / 8),
            ("layer.scales", 128 * 4),
            ("layer.biases", 128 * 4),
            ("layer.bias", 128),
            // 10 rows of 64 values.
            ("lm_head.weight", 10 * 64 / 4),
            ("lm_head.scales", 20),
            ("lm_head.biases", 20),
            ("norm.weight", 256),
            ("odd.biases", 3),
            ("plain", 5),
        ]);
        assert_eq!(
            count_parameters(&tensors, &quantization),
            128 * 256 + 128 + 640 + 256 + 3 + 5
        );
    }

    #[test]
    fn nothing_overflows() {
        let quantization = Quantization::of(&json!({"quantization": {"bits": 4}}));
        let tensors = BTreeMap::from([("a.scales", u64::MAX), ("b", u64::MAX)]);
        assert_eq!(count_parameters(&tensors, &quantization), u64::MAX);
    }
}
