//! What a machine has for models and how it computes.

use crate::{KvQuantization, LeftOut, Precision};

/// Part of the memory that models may take where no GPU limit says: the rest is the system's.
const PART_OF_MEMORY: f64 = 0.75;

/// What the weights and caches of all models may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub bytes: u64,
    /// Where the number comes from, for a person.
    pub source: String,
}

impl Budget {
    /// The budget of a machine whose GPU may hold so many bytes.
    pub fn of_gpu(working_set_bytes: u64) -> Self {
        Self {
            bytes: working_set_bytes,
            source: "what the GPU may hold".into(),
        }
    }

    /// The budget of a machine that computes on its CPU and has so much memory.
    pub fn of_memory(memory_bytes: u64) -> Self {
        Self {
            bytes: (memory_bytes as f64 * PART_OF_MEMORY) as u64,
            source: format!(
                "{:.0} % of {:.0} GB memory",
                PART_OF_MEMORY * 100.0,
                memory_bytes as f64 / f64::from(1 << 30)
            ),
        }
    }

    /// The budget with a limit, which `source` names, where that is lower.
    #[must_use]
    pub fn limit_to(self, limit_bytes: u64, source: &str) -> Self {
        if limit_bytes >= self.bytes {
            return self;
        }
        Self {
            bytes: limit_bytes,
            source: source.to_owned(),
        }
    }
}

/// What a machine offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub budget: Budget,
    pub precision: Precision,
    /// How layers that see everything keep keys and values; `None` is as the model computes.
    pub kv_quantization: Option<KvQuantization>,
    /// Prompt tokens that are computed at once.
    pub prefill_chunk_tokens: u32,
    /// What the engine's architectures take where a config is silent.
    pub left_out: LeftOut,
}
