//! Turns a model folder into a model ready to run.

use std::{collections::HashMap, path::Path};

use macmlx_fit::{context_length, count_parameters};
use mlx_rs::{Array, Dtype};
use serde_json::{Map, Value};

use crate::{
    ComputePolicy, Encoder, Model, ModelError, Result, arch,
    arch::EncoderArchitecture,
    compute::Compute,
    encoder::{AnswerTokens, Head, Reader, SentenceModules},
    weights::{Quantization, Weights, load_arrays, read_json},
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
    /// Positions the model was trained for, where config.json says.
    pub context_length: Option<u32>,
    pub vocab_size: u32,
    /// Bytes of the weights as they are held.
    pub weights_bytes: u64,
    /// How weights are held, as [`macmlx_fit::Holding::describe`] says it.
    pub weights: String,
}

/// How to load an encoder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EncoderOptions {
    pub load: LoadOptions,
    /// How a generator that reranks by its answer says yes and no. `None` for all other models,
    /// also rerankers whose checkpoint has a head of one label.
    pub answers: Option<AnswerTokens>,
}

/// An encoder and what people and schedulers want to know about it.
pub struct LoadedEncoder {
    pub encoder: Box<dyn Encoder>,
    /// `context_length` is the longest text.
    pub facts: ModelFacts,
}

impl std::fmt::Debug for LoadedEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedEncoder")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

/// Loads the model in `folder` (config.json and safetensors) to generate.
///
/// Weights are read and converted one tensor at a time, so the peak is little above what is held.
/// Call it on the thread that will run the model.
pub fn load(folder: &Path, options: &LoadOptions) -> Result<LoadedModel> {
    let mut checkpoint = Checkpoint::open(folder, options, arch::model_types())?;
    let context_length = context_length(&checkpoint.config).map(u64::from);
    let config = checkpoint.config.take();
    let model = arch::build(&checkpoint.model_type, config, &mut checkpoint.weights)?;
    let vocab_size = model.vocab_size();
    Ok(LoadedModel {
        model,
        facts: checkpoint.finish(context_length, vocab_size)?,
    })
}

/// Loads the model in `folder` to read whole texts, with what sentence-transformers' files there say
/// of pooling and normalization.
///
/// Checkpoints of `…ForSequenceClassification` rerank and must have one label; other ones rerank by
/// `options.answers` or make vectors. As [`load`] otherwise.
pub fn load_encoder(folder: &Path, options: &EncoderOptions) -> Result<LoadedEncoder> {
    let mut checkpoint = Checkpoint::open(folder, &options.load, arch::encoder_types())?;
    let purpose = Purpose::of(&checkpoint.config, options)?;
    let config = checkpoint.config.take();
    let mut positions = None;
    let builder = EncoderBuilder {
        weights: &mut checkpoint.weights,
        purpose,
        folder,
        positions: &mut positions,
    };
    let encoder = arch::build_encoder(&checkpoint.model_type, config, builder)?;
    let vocab_size = encoder.vocab_size();
    Ok(LoadedEncoder {
        encoder,
        facts: checkpoint.finish(positions.map(|positions| positions as u64), vocab_size)?,
    })
}

/// What an encoder is to give for each text.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Vector,
    Score,
    Answer(AnswerTokens),
}

impl Purpose {
    fn of(config: &Value, options: &EncoderOptions) -> Result<Self> {
        let architecture = config
            .get("architectures")
            .and_then(|names| names.get(0))
            .and_then(Value::as_str)
            .unwrap_or_default();
        if architecture.ends_with("ForSequenceClassification") {
            return Ok(Self::Score);
        }
        let trunks = ["Model", "ForMaskedLM", "ForPreTraining", "ForCausalLM"];
        if !architecture.is_empty() && !trunks.iter().any(|end| architecture.ends_with(end)) {
            return Err(ModelError::unsupported(
                format!("architectures = {architecture}"),
                "embeddings come from a plain model, scores from one for sequence classification",
            ));
        }
        Ok(options.answers.map_or(Self::Vector, Self::Answer))
    }
}

/// Builds an encoder of any architecture with its head.
#[derive(Debug)]
pub(crate) struct EncoderBuilder<'a> {
    weights: &'a mut Weights,
    purpose: Purpose,
    folder: &'a Path,
    /// Where to note the longest text.
    positions: &'a mut Option<usize>,
}

impl EncoderBuilder<'_> {
    pub(crate) fn build<T: EncoderArchitecture>(
        self,
        config: &T::Config,
    ) -> Result<Box<dyn Encoder>> {
        let Self {
            weights, folder, ..
        } = self;
        let architecture = T::build(config, weights)?;
        let sizes = architecture.sizes();
        let positions = T::positions(config);
        *self.positions = positions;
        let compute = weights.compute;
        let head = match self.purpose {
            Purpose::Score => Head::Score(T::build_scorer(config, weights)?),
            Purpose::Answer(answers) => {
                Head::Score(architecture.build_answer(config, weights, answers)?)
            }
            Purpose::Vector => {
                let modules = SentenceModules::read(folder)?;
                let modules = modules.unwrap_or_else(|| SentenceModules::plain(T::POOL));
                Head::Vector(modules.load(sizes.hidden, weights)?)
            }
        };
        weights.ignore(|key| {
            let mut names = T::UNUSED.iter();
            names.any(|name| key.starts_with(name) || key.contains(&format!(".{name}")))
        });
        Ok(Box::new(Reader::new(
            architecture,
            head,
            positions,
            compute,
        )?))
    }
}

/// A folder's config and tensors on the way to a model.
struct Checkpoint {
    model_type: String,
    /// `config.json`, until the architecture takes it.
    config: Value,
    stored: Stored,
    compute: Compute,
    weights: Weights,
}

impl Checkpoint {
    fn open(
        folder: &Path,
        options: &LoadOptions,
        mut known: impl Iterator<Item = &'static str>,
    ) -> Result<Self> {
        let config: Map<String, Value> = read_json(&folder.join("config.json"))?;
        let model_type = match config.get("model_type") {
            Some(Value::String(model_type)) => model_type.clone(),
            _ => {
                return Err(ModelError::unsupported(
                    "model_type",
                    "config.json does not name it",
                ));
            }
        };
        if !known.any(|known| known == model_type) {
            return Err(ModelError::UnknownArchitecture(model_type));
        }
        let quantization = Quantization::from_config(&config)?;
        let arrays = load_arrays(folder)?;
        let config = Value::Object(config);
        let stated = macmlx_fit::Quantization::of(&config);
        let stored = Stored::of(&arrays, &stated);
        let compute = Compute::new(
            options.compute,
            options.dequantize_budget_bytes,
            stated.is_quantized(),
            stored.parameters,
        )?;
        Ok(Self {
            model_type,
            config,
            stored,
            compute,
            weights: Weights::new(arrays, quantization, compute),
        })
    }

    /// Fails where a tensor was missing or is left.
    fn finish(mut self, context_length: Option<u64>, vocab_size: u32) -> Result<ModelFacts> {
        self.weights.finish()?;
        mlx_rs::memory::clear_cache()?;
        let held_bytes = self.weights.held_bytes() as u64;
        Ok(ModelFacts {
            context_length: context_length.and_then(|length| u32::try_from(length).ok()),
            vocab_size,
            weights_bytes: held_bytes,
            weights: self.compute.holding.describe(&self.stored.form, held_bytes),
            model_type: self.model_type,
        })
    }
}

/// What the files hold.
struct Stored {
    /// The form, for people: `4-bit` or `bf16`.
    form: String,
    /// Values of the model as it was made.
    parameters: u64,
}

impl Stored {
    fn of(arrays: &HashMap<String, Array>, quantization: &macmlx_fit::Quantization) -> Self {
        let elements = |(key, array): (_, &Array)| (String::as_str(key), array.size() as u64);
        let counts = arrays.iter().map(elements).collect();
        let mut by_dtype: HashMap<&str, usize> = HashMap::new();
        for array in arrays.values() {
            *by_dtype.entry(dtype_name(array.dtype())).or_default() += array.size();
        }
        let most = by_dtype.into_iter().max_by_key(|(_, size)| *size);
        let dtype = || most.map_or("empty", |(name, _)| name).to_owned();
        Self {
            form: quantization.name().unwrap_or_else(dtype),
            parameters: count_parameters(&counts, quantization),
        }
    }
}

fn dtype_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bfloat16 => "bf16",
        Dtype::Float16 => "f16",
        Dtype::Float32 => "f32",
        _ => "integers",
    }
}
