//! What the library is told of encoders: it knows no architecture itself.

use serde_json::Value;

/// What the engine knows of models that read whole texts.
#[derive(Debug, Clone, Copy)]
pub struct Encoders {
    /// Whether models of a `model_type` generate nothing.
    pub is_encoder: fn(&str) -> bool,
    /// Tokens of the longest text that a model with this `config.json` reads, special ones included.
    pub positions: fn(&Value) -> Option<usize>,
}

impl Default for Encoders {
    /// Knows none.
    fn default() -> Self {
        Self {
            is_encoder: |_| false,
            positions: |_| None,
        }
    }
}

impl Encoders {
    /// Whether a model reads whole texts and generates none. Of those that the engine does not run,
    /// the class tells, as `config.json` names it.
    pub(super) fn include(&self, config: &Value) -> bool {
        let model_type = config["model_type"].as_str().unwrap_or_default();
        let classes = config["architectures"].as_array();
        let class = classes.and_then(|classes| classes.first()?.as_str());
        (self.is_encoder)(model_type) || class.is_some_and(is_class_of_encoder)
    }

    /// Tokens of the longest text that a model reads, as its config says.
    pub(super) fn longest(&self, config: &Value) -> Option<u64> {
        let known = (self.positions)(config).map(|positions| positions as u64);
        known
            .or_else(|| config["max_position_embeddings"].as_u64())
            .or_else(|| config["n_positions"].as_u64())
    }
}

/// Whether a class is a bare encoder, or was trained to guess words that are left out. Decoders go by
/// their heads' names; some old ones have a bare name with `LM` in it.
fn is_class_of_encoder(class: &str) -> bool {
    let is_bare = class.ends_with("Model") && !class.contains("GLM") && !class.contains("LMHead");
    is_bare || class.ends_with("ForMaskedLM") || class.ends_with("ForPreTraining")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn classes_tell_of_models_that_the_engine_does_not_run() {
        let encoders = Encoders {
            is_encoder: |model_type| model_type == "bert",
            ..Encoders::default()
        };
        for (config, is_encoder) in [
            (json!({"model_type": "bert"}), true),
            (
                json!({"model_type": "mpnet", "architectures": ["MPNetForMaskedLM"]}),
                true,
            ),
            (
                json!({"model_type": "albert", "architectures": ["AlbertModel"]}),
                true,
            ),
            (
                json!({"model_type": "electra", "architectures": ["ElectraForPreTraining"]}),
                true,
            ),
            (
                json!({"model_type": "x", "architectures": ["XForCausalLM"]}),
                false,
            ),
            (
                json!({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}),
                false,
            ),
            (
                json!({"model_type": "chatglm", "architectures": ["ChatGLMModel"]}),
                false,
            ),
            (json!({"model_type": "x"}), false),
            (json!({}), false),
        ] {
            assert_eq!(encoders.include(&config), is_encoder, "{config}");
        }
    }

    #[test]
    fn the_longest_text_is_the_engines_word_else_the_configs() {
        let encoders = Encoders {
            positions: |config| Some(config["pad_token_id"].as_u64()? as usize),
            ..Encoders::default()
        };
        let longest = |config| encoders.longest(&config);
        assert_eq!(
            longest(json!({"pad_token_id": 5, "n_positions": 9})),
            Some(5)
        );
        assert_eq!(
            longest(json!({"max_position_embeddings": 7, "n_positions": 9})),
            Some(7)
        );
        assert_eq!(longest(json!({"n_positions": 9})), Some(9));
        assert_eq!(longest(json!({})), None);
    }
}
