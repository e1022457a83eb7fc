//! What a machine has for models and how it computes.

use macmlx_settings::Settings;

use super::shape::Shape;

/// Part of the memory that models may take where no GPU limit says: the rest is the system's.
const PART_OF_MEMORY: f64 = 0.75;

/// How weights are held and what the KV cache is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compute {
    /// As in the files, by quantized kernels: Apple GPUs.
    Checkpoint,
    /// Everything in float32, quantized weights dequantized while the whole model needs no more
    /// than this: CPUs.
    Float32 { dequantize_budget_bytes: u64 },
}

impl Compute {
    /// Bytes of a value that is computed.
    pub(super) fn value_bytes(self, shape: &Shape) -> u64 {
        match self {
            Self::Checkpoint => shape.value_bytes,
            Self::Float32 { .. } => 4,
        }
    }
}

/// Affine quantization of the KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvQuantization {
    pub bits: u8,
    /// Values that share a scale and a bias.
    pub group_size: u32,
}

/// What a machine offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// What weights and caches of all models may take.
    pub budget_bytes: u64,
    /// Where the budget comes from, for a person.
    pub budget_source: String,
    pub compute: Compute,
    /// Of layers that see everything.
    pub kv_quantization: Option<KvQuantization>,
    /// Prompt tokens that are computed at once.
    pub prefill_chunk_tokens: u32,
}

impl Machine {
    /// `gpu_working_set_bytes`: what the GPU may hold, where models run on one; without it the
    /// machine computes on its CPU. A limit in the settings lowers either.
    pub fn new(memory_bytes: u64, gpu_working_set_bytes: Option<u64>, settings: &Settings) -> Self {
        let (budget_bytes, budget_source) = match gpu_working_set_bytes {
            Some(bytes) => (bytes, "what the GPU may hold".to_owned()),
            None => (
                (memory_bytes as f64 * PART_OF_MEMORY) as u64,
                format!(
                    "{:.0} % of {:.0} GB memory",
                    PART_OF_MEMORY * 100.0,
                    memory_bytes as f64 / gigabytes(1.0)
                ),
            ),
        };
        let limit_bytes = settings
            .max_resident_memory_gb
            .map(|limit| gigabytes(limit.max(0.0)) as u64)
            .filter(|limit| *limit < budget_bytes);
        let (budget_bytes, budget_source) = match limit_bytes {
            Some(limit) => (limit, "maxResidentMemoryGB of the settings".to_owned()),
            None => (budget_bytes, budget_source),
        };
        Self {
            budget_bytes,
            budget_source,
            compute: if gpu_working_set_bytes.is_some() {
                Compute::Checkpoint
            } else {
                Compute::Float32 {
                    dequantize_budget_bytes: gigabytes(settings.dequantize_budget_gb.max(0.0))
                        as u64,
                }
            },
            kv_quantization: settings
                .kv_bits
                .filter(|bits| *bits > 0)
                .map(|bits| KvQuantization {
                    bits,
                    group_size: settings.kv_group_size.max(1),
                }),
            prefill_chunk_tokens: settings.prefill_chunk_tokens.max(1),
        }
    }
}

fn gigabytes(count: f64) -> f64 {
    count * f64::from(1 << 30)
}
