//! The facts a `config.json` states about its model.

use serde_json::Value;

/// What is read of `config.json`. Vision models keep the language model's facts in `text_config`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Facts {
    pub model_type: String,
    pub context_length: Option<u32>,
    /// Bits and mode of the quantization section; `None` for full precision.
    pub quantization: Option<String>,
    /// Data type the config names, in short form.
    pub dtype: Option<String>,
    /// Values that share a scale, by default and by layer path.
    pub group_sizes: GroupSizes,
}

/// How many values share a scale in each quantized layer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct GroupSizes {
    default: u64,
    overrides: Vec<(String, u64)>,
}

impl GroupSizes {
    /// The scheme of the layer whose tensors are `<layer>.weight`, `<layer>.scales`.
    pub(super) fn of(&self, layer: &str) -> u64 {
        self.overrides
            .iter()
            .find(|(path, _)| path == layer)
            .map_or(self.default, |(_, size)| *size)
    }
}

/// Reads the facts; the error is a reason for a person.
pub(super) fn facts(config: &Value) -> Result<Facts, String> {
    let model_type = config["model_type"]
        .as_str()
        .ok_or("config.json names no model_type")?;
    let text = |key: &str| match &config[key] {
        Value::Null => config["text_config"][key].clone(),
        value => value.clone(),
    };
    let quantization = match &config["quantization"] {
        Value::Null => &config["quantization_config"],
        section => section,
    };
    Ok(Facts {
        model_type: model_type.to_owned(),
        context_length: text("max_position_embeddings")
            .as_u64()
            .and_then(|length| u32::try_from(length).ok()),
        quantization: quantization_name(quantization),
        dtype: [text("dtype"), text("torch_dtype")]
            .iter()
            .find_map(Value::as_str)
            .map(|name| short_dtype(name).to_owned()),
        group_sizes: group_sizes(quantization),
    })
}

fn quantization_name(section: &Value) -> Option<String> {
    match section["mode"].as_str() {
        Some(mode) if mode != "affine" => Some(mode.to_owned()),
        _ => section["bits"].as_u64().map(|bits| format!("{bits}-bit")),
    }
}

fn group_sizes(section: &Value) -> GroupSizes {
    GroupSizes {
        default: section["group_size"].as_u64().unwrap_or(64),
        overrides: section
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(path, layer)| Some((path.clone(), layer["group_size"].as_u64()?)))
            .collect(),
    }
}

/// `bfloat16`, `torch.float16` and safetensors' `BF16` as people write them.
pub(super) fn short_dtype(name: &str) -> &str {
    match name.trim_start_matches("torch.") {
        "bfloat16" | "BF16" => "bf16",
        "float16" | "F16" => "f16",
        "float32" | "F32" => "f32",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_and_nested_configs() {
        let plain = facts(&json!({
            "model_type": "qwen3", "max_position_embeddings": 40960, "torch_dtype": "bfloat16"
        }))
        .unwrap();
        assert_eq!(plain.context_length, Some(40960));
        assert_eq!(plain.quantization, None);
        assert_eq!(plain.dtype.as_deref(), Some("bf16"));
        let nested = facts(&json!({
            "model_type": "gemma3", "text_config": {"max_position_embeddings": 131_072},
            "quantization": {"group_size": 64, "bits": 4, "lm_head": {"group_size": 32, "bits": 8}}
        }))
        .unwrap();
        assert_eq!(nested.context_length, Some(131_072));
        assert_eq!(nested.quantization.as_deref(), Some("4-bit"));
        assert_eq!(nested.group_sizes.of("lm_head"), 32);
        assert_eq!(nested.group_sizes.of("model.layers.0.mlp.up_proj"), 64);
    }

    #[test]
    fn other_modes_keep_their_name() {
        let mxfp4 = facts(&json!({
            "model_type": "gpt_oss", "quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}
        }))
        .unwrap();
        assert_eq!(mxfp4.quantization.as_deref(), Some("mxfp4"));
    }

    #[test]
    fn a_config_without_a_type_says_so() {
        assert!(facts(&json!({})).unwrap_err().contains("model_type"));
    }
}
