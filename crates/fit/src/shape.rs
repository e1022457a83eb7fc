//! What of a model's config decides how much memory it takes.

use serde_json::Value;

use crate::Precision;

/// The numbers of a config; what it does not say is zero. Strangers write configs, so products of the
/// numbers saturate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    /// In order.
    pub layers: Vec<Layer>,
    pub hidden: u64,
    /// Width of the widest part of the feed-forward network that one token passes.
    pub intermediate: u64,
    pub heads: u64,
    pub vocabulary: u64,
    pub context_length: Option<u32>,
    /// Bytes of a value in the checkpoint's own precision.
    stored_value_bytes: u64,
}

/// What a layer keeps of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    /// This many values for each token.
    Full { values: u64 },
    /// This many values for each of the newest tokens.
    Window { values: u64, tokens: u64 },
    /// This many values, however long the sequence is.
    Constant { values: u64 },
    /// Nothing: it attends to what another layer keeps.
    Shared,
}

const MAX_LAYERS: u64 = 1024;
const MAX_SIZE: u64 = 1 << 24;

impl Shape {
    pub(crate) fn of(config: &Value) -> Self {
        let config = Config(config);
        let heads = config.size("num_attention_heads");
        let experts = config.size("num_experts_per_tok");
        let of_experts = experts * config.size("moe_intermediate_size");
        Self {
            layers: config.layers(),
            hidden: config.size("hidden_size"),
            intermediate: config.size("intermediate_size").max(of_experts),
            heads,
            vocabulary: config.size("vocab_size"),
            context_length: config.context_length(),
            stored_value_bytes: config.value_bytes(),
        }
    }

    /// Bytes of a value that is computed.
    pub(crate) fn value_bytes(&self, precision: Precision) -> u64 {
        match precision {
            Precision::Checkpoint => self.stored_value_bytes,
            Precision::Float32 { .. } => 4,
        }
    }
}

/// Bytes of a value that is not quantized, in the checkpoint's own precision.
pub(crate) fn stored_value_bytes(config: &Value) -> u64 {
    Config(config).value_bytes()
}

/// Positions that a text model was trained for, where its `config.json` says.
pub fn context_length(config: &Value) -> Option<u32> {
    Config(config).context_length()
}

/// A config; those of vision models keep the language model's numbers in `text_config`.
struct Config<'a>(&'a Value);

impl Config<'_> {
    fn get(&self, key: &str) -> &Value {
        match &self.0[key] {
            Value::Null => &self.0["text_config"][key],
            value => value,
        }
    }

    fn context_length(&self) -> Option<u32> {
        let length = self.get("max_position_embeddings").as_u64()?;
        u32::try_from(length).ok()
    }

    fn size(&self, key: &str) -> u64 {
        self.get(key).as_u64().unwrap_or(0).min(MAX_SIZE)
    }

    /// Bytes of a value that is not quantized.
    fn value_bytes(&self) -> u64 {
        let mut names = ["dtype", "torch_dtype"].iter();
        match names.find_map(|key| self.get(key).as_str()) {
            Some("float32") => 4,
            _ => 2,
        }
    }

    fn size_or(&self, key: &str, other: u64) -> u64 {
        match self.size(key) {
            0 => other,
            size => size,
        }
    }

    fn layers(&self) -> Vec<Layer> {
        let count = self.size("num_hidden_layers").min(MAX_LAYERS);
        let shared = self.size("num_kv_shared_layers").min(count);
        (0..count)
            .map(|index| {
                if index >= count - shared {
                    Layer::Shared
                } else {
                    self.layer(index)
                }
            })
            .collect()
    }

    fn layer(&self, index: u64) -> Layer {
        let values = self.values_of_token();
        match self.kind(index) {
            Kind::Full | Kind::Window(0) => Layer::Full { values },
            Kind::Window(tokens) => Layer::Window { values, tokens },
            Kind::Linear => Layer::Constant {
                values: product(&[
                    self.size("linear_num_value_heads"),
                    self.size("linear_key_head_dim"),
                    self.size("linear_value_head_dim"),
                ]),
            },
        }
    }

    /// As the engine decides it, and mlx-lm: a window that no list of layers refers to is not applied.
    fn kind(&self, index: u64) -> Kind {
        let window = self.size("sliding_window");
        if let Some(kinds) = self.get("layer_types").as_array() {
            return match kinds.get(index as usize).and_then(Value::as_str) {
                Some("sliding_attention") => Kind::Window(window),
                Some("chunked_attention") => Kind::Window(self.size("attention_chunk_size")),
                Some("linear_attention") => Kind::Linear,
                _ => Kind::Full,
            };
        }
        let is_last_of = |interval: u64| (index + 1).is_multiple_of(interval);
        match self.size("full_attention_interval") {
            0 => {}
            interval if is_last_of(interval) => return Kind::Full,
            _ => return Kind::Linear,
        }
        match self.size("sliding_window_pattern") {
            0 => Kind::Full,
            pattern if is_last_of(pattern) => Kind::Full,
            _ => Kind::Window(window),
        }
    }

    /// Keys and values of one token in one layer.
    fn values_of_token(&self) -> u64 {
        let latent = self.size("kv_lora_rank");
        if latent > 0 {
            return latent + self.size("qk_rope_head_dim");
        }
        let heads = self.size("num_attention_heads");
        let of_keys = self.size_or("head_dim", self.size("hidden_size") / heads.max(1));
        let of_values = self.size_or("v_head_dim", of_keys);
        product(&[
            self.size_or("num_key_value_heads", heads),
            of_keys + of_values,
        ])
    }
}

/// Of sizes; saturates.
pub(crate) fn product(sizes: &[u64]) -> u64 {
    sizes
        .iter()
        .fold(1, |product, size| product.saturating_mul(*size))
}

enum Kind {
    Full,
    /// Tokens; zero is no window.
    Window(u64),
    Linear,
}
