//! The architectures that are imported: how their tensors are called and what the GGUF converter
//! did to them.

use crate::Error;

/// An importable architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Architecture {
    Llama,
    Qwen2,
    Qwen3,
    Gemma3,
}

/// What must be undone on the way to an MLX tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undo {
    Nothing,
    /// Rows of each attention head are interleaved for ggml's rotary embedding.
    InterleavedHeads {
        heads: Heads,
    },
    /// One was added to every value (norms of the Gemma family).
    AddedOne,
}

/// Whose heads a projection has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heads {
    Query,
    KeyValue,
}

/// Where a tensor goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Name in the MLX checkpoint, with `.weight` or `.bias`.
    pub name: String,
    pub undo: Undo,
}

impl Architecture {
    pub(crate) fn from_name(name: &str) -> Result<Self, Error> {
        match name {
            "llama" => Ok(Self::Llama),
            "qwen2" => Ok(Self::Qwen2),
            "qwen3" => Ok(Self::Qwen3),
            "gemma3" => Ok(Self::Gemma3),
            other => Err(Error::Architecture(other.to_owned())),
        }
    }

    /// `model_type` of config.json.
    pub(crate) fn model_type(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Gemma3 => "gemma3_text",
        }
    }

    /// Class name config.json lists, for readers that look there.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Llama => "LlamaForCausalLM",
            Self::Qwen2 => "Qwen2ForCausalLM",
            Self::Qwen3 => "Qwen3ForCausalLM",
            Self::Gemma3 => "Gemma3ForCausalLM",
        }
    }

    /// The MLX name of a GGUF tensor; `None` for what is derived data and not a weight.
    pub(crate) fn target(self, tensor: &str) -> Result<Option<Target>, Error> {
        let unknown = || Error::UnknownTensor(tensor.to_owned());
        // Factors of a scaled rotary embedding: they end up in config.json.
        if tensor == "rope_freqs.weight" {
            return Ok(None);
        }
        let (path, kind) = tensor.rsplit_once('.').ok_or_else(unknown)?;
        if !matches!(kind, "weight" | "bias") {
            return Err(unknown());
        }
        let (name, part) = match path.strip_prefix("blk.") {
            None => {
                let name = match path {
                    "token_embd" => "model.embed_tokens",
                    "output_norm" => "model.norm",
                    "output" => "lm_head",
                    _ => return Err(unknown()),
                };
                (name.to_owned(), path)
            }
            Some(rest) => {
                let (layer, part) = rest.split_once('.').ok_or_else(unknown)?;
                let layer: u32 = layer.parse().map_err(|_| unknown())?;
                let module = self.module(part).ok_or_else(unknown)?;
                (format!("model.layers.{layer}.{module}"), part)
            }
        };
        Ok(Some(Target {
            name: format!("{name}.{kind}"),
            undo: self.undo(part),
        }))
    }

    fn module(self, part: &str) -> Option<&'static str> {
        let has_head_norms = matches!(self, Self::Qwen3 | Self::Gemma3);
        Some(match part {
            "attn_norm" => "input_layernorm",
            "attn_q" => "self_attn.q_proj",
            "attn_k" => "self_attn.k_proj",
            "attn_v" => "self_attn.v_proj",
            "attn_output" => "self_attn.o_proj",
            "attn_q_norm" if has_head_norms => "self_attn.q_norm",
            "attn_k_norm" if has_head_norms => "self_attn.k_norm",
            "ffn_norm" if self == Self::Gemma3 => "pre_feedforward_layernorm",
            "ffn_norm" => "post_attention_layernorm",
            "post_attention_norm" if self == Self::Gemma3 => "post_attention_layernorm",
            "post_ffw_norm" if self == Self::Gemma3 => "post_feedforward_layernorm",
            "ffn_gate" => "mlp.gate_proj",
            "ffn_up" => "mlp.up_proj",
            "ffn_down" => "mlp.down_proj",
            _ => return None,
        })
    }

    fn undo(self, part: &str) -> Undo {
        match (self, part) {
            (Self::Llama, "attn_q") => Undo::InterleavedHeads {
                heads: Heads::Query,
            },
            (Self::Llama, "attn_k") => Undo::InterleavedHeads {
                heads: Heads::KeyValue,
            },
            (Self::Gemma3, part) if part.ends_with("norm") => Undo::AddedOne,
            _ => Undo::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_gguf_name_means_different_norms() {
        let name = |architecture: Architecture| {
            architecture
                .target("blk.3.ffn_norm.weight")
                .unwrap()
                .unwrap()
                .name
        };
        assert_eq!(
            name(Architecture::Qwen3),
            "model.layers.3.post_attention_layernorm.weight"
        );
        assert_eq!(
            name(Architecture::Gemma3),
            "model.layers.3.pre_feedforward_layernorm.weight"
        );
    }

    #[test]
    fn tensors_of_other_layouts_are_refused_by_name() {
        for tensor in [
            "blk.0.ffn_gate_exps.weight",
            "blk.0.attn_q_norm.weight",
            "blk.x.attn_q.weight",
            "token_types.weight",
        ] {
            let error = Architecture::Llama.target(tensor).unwrap_err();
            assert!(error.to_string().contains(tensor));
        }
    }
}
