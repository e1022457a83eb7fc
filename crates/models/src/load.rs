//! From a model folder to a model ready to run.

use std::{collections::HashMap, path::Path};

use mlx_rs::{Array, Dtype};
use serde_json::{Map, Value};

use crate::{
    ComputePolicy, Model, ModelError, Result, arch,
    compute::Compute,
    weights::{Quantization, Weights, load_arrays, read_text},
};

/// How to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    pub compute: ComputePolicy,
    /// Under [`ComputePolicy::Float32`], quantized weights are held dequantized while the whole
    /// model, in float32, takes no more than this.
    pub dequantize_budget_bytes: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            compute: ComputePolicy::default(),
            dequantize_budget_bytes: 4 << 30,
        }
    }
}

/// A model and what people and schedulers want to know about it.
pub struct LoadedModel {
    pub model: Box<dyn Model>,
    pub facts: ModelFacts,
}

impl std::fmt::Debug for LoadedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedModel")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

/// Facts of a loaded model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    pub model_type: String,
    /// Positions the model was trained for (`max_position_embeddings`), where config.json says.
    pub context_length: Option<u32>,
    pub vocab_size: u32,
    /// Bytes of the weights as they are held.
    pub weights_bytes: u64,
    /// How weights are held, for people: `4-bit, dequantized to float32 (538 MB)`.
    pub weights: String,
}

/// Loads the model in `folder` (config.json and safetensors).
///
/// Weights are read and converted one tensor at a time, so the peak is little above what is held.
/// Call it on the thread that will run the model.
pub fn load(folder: &Path, options: &LoadOptions) -> Result<LoadedModel> {
    let config: Map<String, Value> =
        serde_json::from_str(&read_text(&folder.join("config.json"))?)?;
    let model_type = match config.get("model_type") {
        Some(Value::String(model_type)) => model_type.clone(),
        _ => {
            return Err(ModelError::unsupported(
                "model_type",
                "config.json does not name it",
            ));
        }
    };
    if !arch::model_types().any(|known| known == model_type) {
        return Err(ModelError::UnknownArchitecture(model_type));
    }
    let quantization = Quantization::from_config(&config)?;
    let arrays = load_arrays(folder)?;
    let stored = Stored::of(&arrays, &quantization);
    let budget_bytes = options.dequantize_budget_bytes;
    let compute = Compute::new(options.compute, stored.float32_bytes, budget_bytes)?;
    let context_length = config
        .get("max_position_embeddings")
        .and_then(Value::as_u64);
    let mut weights = Weights::new(arrays, quantization, compute);
    let model = arch::build(&model_type, Value::Object(config), &mut weights)?;
    weights.finish()?;
    mlx_rs::memory::clear_cache()?;
    let facts = ModelFacts {
        context_length: context_length.and_then(|length| u32::try_from(length).ok()),
        vocab_size: model.vocab_size(),
        weights_bytes: weights.held_bytes() as u64,
        weights: stored.describe(compute, weights.held_bytes()),
        model_type,
    };
    Ok(LoadedModel { model, facts })
}

/// What the files hold.
struct Stored {
    /// `4-bit` or `bfloat16`.
    format: String,
    is_quantized: bool,
    /// Bytes of all of it as float32.
    float32_bytes: u64,
}

impl Stored {
    fn of(arrays: &HashMap<String, Array>, quantization: &Quantization) -> Self {
        let mut float32_bytes = 0;
        let mut by_dtype: HashMap<&str, usize> = HashMap::new();
        for (key, array) in arrays {
            let quantized = key.strip_suffix(".weight").and_then(|path| {
                let scales = arrays.get(&format!("{path}.scales"))?;
                Some(quantization.group_size(path)? * scales.size())
            });
            float32_bytes += 4 * quantized.unwrap_or(array.size()) as u64;
            *by_dtype.entry(dtype_name(array.dtype())).or_default() += array.size();
        }
        let most = by_dtype.into_iter().max_by_key(|(_, size)| *size);
        let dtype = most.map_or("empty", |(name, _)| name).to_owned();
        let format = quantization
            .bits
            .map_or(dtype, |bits| format!("{bits}-bit"));
        Self {
            format,
            is_quantized: quantization.bits.is_some(),
            float32_bytes,
        }
    }

    fn describe(&self, compute: Compute, held_bytes: usize) -> String {
        let held = match (compute.dtype, self.is_quantized, compute.dequantize) {
            (Some(_), true, true) => ", dequantized to float32",
            (Some(_), true, false) => ", computed in float32",
            (Some(_), false, _) if self.format != "float32" => ", converted to float32",
            _ => "",
        };
        format!(
            "{}{held} ({} MB)",
            self.format,
            held_bytes.div_ceil(1_000_000)
        )
    }
}

fn dtype_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bfloat16 => "bfloat16",
        Dtype::Float16 => "float16",
        Dtype::Float32 => "float32",
        _ => "integers",
    }
}
