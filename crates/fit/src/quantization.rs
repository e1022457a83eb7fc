//! What a config says of quantized weights.

use std::collections::HashMap;

use serde_json::Value;

/// Group size where a config names none: mlx-lm's default.
const DEFAULT_GROUP_SIZE: u64 = 64;

/// The quantization section of a config, read leniently: whether a model can be loaded is for the
/// loader to say. Without a section nothing is quantized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantization {
    /// Bits of a value, where they are named and can be.
    bits: Option<u64>,
    mode: Option<String>,
    group_size: u64,
    /// Layers with a group size of their own, by path.
    layers: HashMap<String, u64>,
}

impl Quantization {
    /// Reads `quantization` of a `config.json`, or `quantization_config`.
    pub fn of(config: &Value) -> Self {
        let section = match &config["quantization"] {
            section @ Value::Object(_) => section,
            _ => &config["quantization_config"],
        };
        let size = |value: &Value| Some(value["group_size"].as_u64()?.clamp(1, 1 << 20));
        Self {
            bits: section["bits"]
                .as_u64()
                .filter(|bits| (1..=16).contains(bits)),
            mode: section["mode"].as_str().map(str::to_owned),
            group_size: size(section).unwrap_or(DEFAULT_GROUP_SIZE),
            layers: section
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(path, layer)| Some((path.clone(), size(layer)?)))
                .collect(),
        }
    }

    /// Whether most weights are quantized.
    pub fn is_quantized(&self) -> bool {
        self.bits.is_some()
    }

    /// The name for a person: `4-bit`, or the mode where it is another than affine. `None` in full
    /// precision.
    pub fn name(&self) -> Option<String> {
        match &self.mode {
            Some(mode) if mode != "affine" => Some(mode.clone()),
            _ => self.bits.map(|bits| format!("{bits}-bit")),
        }
    }

    /// Values that share a scale in the layer whose tensors are `<layer>.weight`, `<layer>.scales`.
    pub fn group_size(&self, layer: &str) -> u64 {
        self.layers.get(layer).copied().unwrap_or(self.group_size)
    }

    /// Bits of a packed value, without scales.
    pub(crate) fn bits(&self) -> Option<u64> {
        self.bits
    }

    /// Bytes of a value with its part of scales and biases.
    pub(crate) fn bytes_per_value(&self) -> Option<f64> {
        let of_group = match self.mode.as_deref() {
            // A scale and a bias in half precision.
            None | Some("affine") => 4.0,
            Some(_) => 1.0,
        };
        Some(self.bits? as f64 / 8.0 + of_group / self.group_size as f64)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_group_sizes() {
        let plain = Quantization::of(&json!({"model_type": "qwen3"}));
        assert_eq!((plain.name(), plain.is_quantized()), (None, false));
        let mixed = Quantization::of(&json!({
            "quantization": {"group_size": 128, "bits": 4, "lm_head": {"group_size": 32, "bits": 8}}
        }));
        assert_eq!(mixed.name().as_deref(), Some("4-bit"));
        assert_eq!(mixed.group_size("lm_head"), 32);
        assert_eq!(mixed.group_size("model.layers.0.mlp.up_proj"), 128);
        let other = Quantization::of(&json!({
            "quantization_config": {"group_size": 32, "bits": 4, "mode": "mxfp4"}
        }));
        assert_eq!(other.name().as_deref(), Some("mxfp4"));
        assert!(other.is_quantized());
    }

    #[test]
    fn strange_sections_quantize_nothing() {
        for section in [
            json!("4-bit"),
            json!([4]),
            json!({"bits": 0}),
            json!({"bits": 64, "group_size": 0}),
        ] {
            let quantization = Quantization::of(&json!({ "quantization": section }));
            assert!(!quantization.is_quantized(), "{quantization:?}");
            assert_eq!(quantization.name(), None);
            assert!(quantization.group_size("lm_head") > 0);
        }
    }
}
