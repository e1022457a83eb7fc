//! Hyperparameters of a GGUF file as the `config.json` mlx-lm reads.

use std::fmt::Display;

use serde_json::{Map, Value, json};

use crate::{Error, architecture::Architecture, metadata::Metadata};

/// Rotary base of sliding-window layers when a Gemma file does not name it.
const GEMMA_LOCAL_ROPE_BASE: f64 = 10_000.0;
/// One layer in this many attends globally, in every Gemma 3.
const GEMMA_SLIDING_WINDOW_PATTERN: u64 = 6;
/// Layers of the one Gemma 3 (27B) whose query scale is not its head dimension.
const GEMMA_27B_LAYERS: u64 = 62;
/// Keys that change what a model computes in ways these architectures do not have.
const FOREIGN_KEYS: [&str; 6] = [
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "embedding_scale",
    "residual_scale",
    "logit_scale",
    "attention.scale",
];

/// What the tensors say beside the metadata.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says whether a tensor is in the file"
)]
#[derive(Debug)]
pub(crate) struct Observed {
    pub vocabulary: u64,
    pub has_output: bool,
    /// Of query, key and value projections.
    pub has_attention_bias: bool,
    /// Of the projection behind attention.
    pub has_output_bias: bool,
    pub has_mlp_bias: bool,
    /// Factors of a scaled rotary embedding.
    pub rope_factors: Option<Vec<f32>>,
    /// `float16`, `bfloat16` or `float32`.
    pub dtype: &'static str,
}

/// Attention heads, needed to undo what the converter did to projections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadCounts {
    pub query: u64,
    pub key_value: u64,
}

impl HeadCounts {
    pub(crate) fn read(metadata: &Metadata) -> Result<Self, Error> {
        let query = metadata.required_unsigned("attention.head_count")?;
        let key_value = metadata
            .model_unsigned("attention.head_count_kv")?
            .unwrap_or(query);
        if query == 0 || key_value == 0 {
            return Err(Error::Damaged("a model without attention heads".into()));
        }
        Ok(Self { query, key_value })
    }
}

/// Builds config.json without its quantization section.
pub(crate) fn build(
    architecture: Architecture,
    metadata: &Metadata,
    observed: &Observed,
) -> Result<Map<String, Value>, Error> {
    for key in FOREIGN_KEYS {
        if let Some(value) = metadata.model_float(key)? {
            return Err(unsupported(key, &value));
        }
    }
    // MLX's llama has one switch for all four projections.
    if architecture == Architecture::Llama
        && observed.has_attention_bias != observed.has_output_bias
    {
        return Err(unsupported("attention bias", "on some projections only"));
    }
    let hidden = metadata.required_unsigned("embedding_length")?;
    let layers = metadata.required_unsigned("block_count")?;
    let heads = HeadCounts::read(metadata)?;
    let head_dimension = head_dimension(metadata, hidden / heads.query)?;
    let rope_base = metadata.model_float("rope.freq_base")?.unwrap_or(10_000.0);
    let mut config = Map::new();
    let mut set = |key: &str, value: Value| {
        config.insert(key.to_owned(), value);
    };
    set("architectures", json!([architecture.class()]));
    set("model_type", json!(architecture.model_type()));
    set("hidden_size", json!(hidden));
    set(
        "intermediate_size",
        json!(metadata.required_unsigned("feed_forward_length")?),
    );
    set("num_hidden_layers", json!(layers));
    set("num_attention_heads", json!(heads.query));
    set("num_key_value_heads", json!(heads.key_value));
    set("head_dim", json!(head_dimension));
    set(
        "rms_norm_eps",
        json!(
            metadata
                .model_float("attention.layer_norm_rms_epsilon")?
                .ok_or_else(|| Error::MissingKey("attention.layer_norm_rms_epsilon".into()))?
        ),
    );
    set(
        "max_position_embeddings",
        json!(metadata.required_unsigned("context_length")?),
    );
    set("rope_theta", json!(rope_base));
    set(
        "rope_scaling",
        rope_scaling(metadata, observed, rope_base, head_dimension)?,
    );
    set("vocab_size", json!(observed.vocabulary));
    set("tie_word_embeddings", json!(!observed.has_output));
    set("attention_bias", json!(observed.has_attention_bias));
    set("mlp_bias", json!(observed.has_mlp_bias));
    set("torch_dtype", json!(observed.dtype));
    if architecture == Architecture::Gemma3 {
        let query_scalar = if layers == GEMMA_27B_LAYERS {
            hidden / heads.query
        } else {
            head_dimension
        };
        let pattern = metadata.model_unsigned("attention.sliding_window_pattern");
        set("hidden_activation", json!("gelu_pytorch_tanh"));
        set("query_pre_attn_scalar", json!(query_scalar));
        set(
            "rope_local_base_freq",
            json!(
                metadata
                    .model_float("rope.freq_base_swa")?
                    .unwrap_or(GEMMA_LOCAL_ROPE_BASE)
            ),
        );
        set(
            "sliding_window",
            json!(metadata.required_unsigned("attention.sliding_window")?),
        );
        set(
            "sliding_window_pattern",
            // Some converters write the pattern out, layer by layer; it is the same pattern.
            json!(
                pattern
                    .ok()
                    .flatten()
                    .unwrap_or(GEMMA_SLIDING_WINDOW_PATTERN)
            ),
        );
    } else {
        set("hidden_act", json!("silu"));
    }
    if architecture == Architecture::Qwen2 {
        set("use_sliding_window", json!(false));
    }
    Ok(config)
}

fn head_dimension(metadata: &Metadata, default: u64) -> Result<u64, Error> {
    let key = metadata
        .model_unsigned("attention.key_length")?
        .unwrap_or(default);
    let value = metadata
        .model_unsigned("attention.value_length")?
        .unwrap_or(key);
    let rotated = metadata
        .model_unsigned("rope.dimension_count")?
        .unwrap_or(key);
    if value != key {
        return Err(unsupported("attention.value_length", &value));
    }
    if rotated != key {
        return Err(unsupported("rope.dimension_count", &rotated));
    }
    Ok(key)
}

fn rope_scaling(
    metadata: &Metadata,
    observed: &Observed,
    base: f64,
    head_dimension: u64,
) -> Result<Value, Error> {
    if let Some(factors) = &observed.rope_factors {
        return llama3_scaling(factors, base, head_dimension);
    }
    let factor = match metadata.model_float("rope.scaling.factor")? {
        Some(factor) => factor,
        None => metadata.model_float("rope.scale_linear")?.unwrap_or(1.0),
    };
    let kind = metadata.model_string("rope.scaling.type")?;
    if let Some(attention) = metadata.model_float("rope.scaling.attn_factor")?
        && (attention - 1.0).abs() > f64::EPSILON
    {
        return Err(unsupported("rope.scaling.attn_factor", &attention));
    }
    match kind {
        Some("none") => Ok(Value::Null),
        // llama.cpp takes scaling without a type for linear.
        None | Some("linear") if (factor - 1.0).abs() <= f64::EPSILON || factor == 0.0 => {
            Ok(Value::Null)
        }
        None | Some("linear") => Ok(json!({
            "type": "linear", "rope_type": "linear", "factor": factor
        })),
        Some("yarn") => {
            let original = metadata.required_unsigned("rope.scaling.original_context_length")?;
            let mut scaling = json!({
                "type": "yarn", "rope_type": "yarn", "factor": factor,
                "original_max_position_embeddings": original
            });
            for (key, name) in [
                ("rope.scaling.yarn_beta_fast", "beta_fast"),
                ("rope.scaling.yarn_beta_slow", "beta_slow"),
            ] {
                if let Some(value) = metadata.model_float(key)? {
                    scaling[name] = json!(value);
                }
            }
            Ok(scaling)
        }
        Some(other) => Err(unsupported("rope scaling", other)),
    }
}

/// Llama 3's scaling is kept as one factor a frequency. The parameters they were made from are
/// found again by trying the ones every Llama 3 has, with the factor the longest wavelength got.
fn llama3_scaling(factors: &[f32], base: f64, head_dimension: u64) -> Result<Value, Error> {
    const LOW_FREQUENCY_FACTOR: f64 = 1.0;
    const HIGH_FREQUENCY_FACTOR: f64 = 4.0;
    const ORIGINAL_CONTEXT: f64 = 8192.0;
    const TOLERANCE: f64 = 1e-4;

    let factor = f64::from(factors.iter().copied().fold(1.0_f32, f32::max));
    let expected = |index: usize| {
        let exponent = 2.0 * index as f64 / head_dimension as f64;
        let wavelength = std::f64::consts::TAU * base.powf(exponent);
        if wavelength < ORIGINAL_CONTEXT / HIGH_FREQUENCY_FACTOR {
            1.0
        } else if wavelength > ORIGINAL_CONTEXT / LOW_FREQUENCY_FACTOR {
            factor
        } else {
            let smooth = (ORIGINAL_CONTEXT / wavelength - LOW_FREQUENCY_FACTOR)
                / (HIGH_FREQUENCY_FACTOR - LOW_FREQUENCY_FACTOR);
            1.0 / ((1.0 - smooth) / factor + smooth)
        }
    };
    let is_llama3 = factors.len() as u64 * 2 == head_dimension
        && factors.iter().enumerate().all(|(index, &found)| {
            let expected = expected(index);
            (f64::from(found) - expected).abs() <= TOLERANCE * expected
        });
    if !is_llama3 {
        return Err(unsupported("rotary factors", "rope_freqs.weight"));
    }
    Ok(json!({
        "type": "llama3", "rope_type": "llama3", "factor": factor,
        "low_freq_factor": LOW_FREQUENCY_FACTOR, "high_freq_factor": HIGH_FREQUENCY_FACTOR,
        "original_max_position_embeddings": ORIGINAL_CONTEXT as u64
    }))
}

fn unsupported(what: &'static str, value: &(impl Display + ?Sized)) -> Error {
    Error::Unsupported {
        what,
        value: value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_that_no_llama3_has_are_refused() {
        assert!(llama3_scaling(&[1.0, 3.0], 500_000.0, 4).is_err());
        assert!(llama3_scaling(&[1.0, 1.0, 1.0], 500_000.0, 4).is_err());
    }
}
