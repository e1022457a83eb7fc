//! The facts a `config.json` states about its model.

use macmlx_fit::{Quantization, context_length};
use serde_json::Value;

/// What is read of `config.json`. Vision models keep the language model's facts in `text_config`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Facts {
    pub model_type: String,
    pub context_length: Option<u32>,
    pub quantization: Quantization,
    /// Data type the config names, in short form.
    pub dtype: Option<String>,
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
    Ok(Facts {
        model_type: model_type.to_owned(),
        context_length: context_length(config),
        quantization: Quantization::of(config),
        dtype: [text("dtype"), text("torch_dtype")]
            .iter()
            .find_map(Value::as_str)
            .map(|name| short_dtype(name).to_owned()),
    })
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
        assert!(!plain.quantization.is_quantized());
        assert_eq!(plain.dtype.as_deref(), Some("bf16"));
        let nested = facts(&json!({
            "model_type": "gemma3", "text_config": {"max_position_embeddings": 131_072},
            "quantization": {"group_size": 64, "bits": 4}
        }))
        .unwrap();
        assert_eq!(nested.context_length, Some(131_072));
        assert_eq!(nested.quantization.name().as_deref(), Some("4-bit"));
    }

    #[test]
    fn a_config_without_a_type_says_so() {
        assert!(facts(&json!({})).unwrap_err().contains("model_type"));
    }
}
