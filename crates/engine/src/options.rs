//! What the engine is told once, when it is made.

use macmlx_models::LoadOptions;
pub use macmlx_models::cache::KvQuantization;

/// Limits and choices of an [`crate::Engine`], by value: nothing here is read from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Sequences that run at once; others wait in order of arrival. A single request with more
    /// choices than this runs alone.
    pub max_batch: usize,
    /// Prompt tokens computed between two decode steps of the others.
    pub prefill_chunk: usize,
    /// Requests that may wait before new ones are refused as overloaded.
    pub queue_limit: usize,
    /// Where quantized kernels are slow, weights are held dequantized up to this many bytes.
    pub dequantize_budget_bytes: u64,
    /// Bytes that the weights of all models in memory may take; a model that exceeds it is refused.
    /// `None`: as much as there is.
    pub memory_limit_bytes: Option<u64>,
    /// Quantization of keys and values of new sequences. `None` keeps the compute dtype.
    pub kv_quantization: Option<KvQuantization>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            max_batch: 32,
            prefill_chunk: 512,
            queue_limit: 256,
            dequantize_budget_bytes: LoadOptions::default().dequantize_budget_bytes,
            memory_limit_bytes: None,
            kv_quantization: None,
        }
    }
}
