//! Lists of models: `/api/v0/models`, and `/api/v1/models` in words of its own.

use macmlx_inference::{ModelCard, ModelTask, ModelTraits};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::json;

/// All local models with what they can do.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::ModelList)]
pub struct ModelList {
    object: &'static str,
    data: Vec<Model>,
}

/// One model as LM Studio describes it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::Model)]
pub struct Model {
    id: String,
    object: &'static str,
    /// `llm`, `vlm` for one that sees, or `embeddings`. Rerankers are the latter too: editors know no
    /// other words and give the whole list up over one.
    r#type: &'static str,
    publisher: String,
    arch: String,
    compatibility_type: &'static str,
    quantization: Option<String>,
    /// `loaded` or `not-loaded`.
    state: &'static str,
    max_context_length: Option<u32>,
    /// Only while loaded; all of the context can be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    loaded_context_length: Option<u32>,
    /// `tool_use` for a model that calls tools, `vision` for one that sees.
    capabilities: Vec<&'static str>,
}

/// The list of `/api/v0/models`.
pub fn list(models: Vec<Model>) -> Value {
    json::value(&ModelList {
        object: "list",
        data: models,
    })
}

impl Model {
    pub fn new(card: &ModelCard, traits: &ModelTraits, is_loaded: bool) -> Self {
        let capabilities = [
            (traits.tools.takes_tools(), "tool_use"),
            (traits.sees_images, "vision"),
        ];
        Self {
            id: card.id.clone(),
            object: "model",
            r#type: match card.task {
                ModelTask::Generate if traits.sees_images => "vlm",
                ModelTask::Generate => "llm",
                ModelTask::Embed | ModelTask::Rerank => "embeddings",
            },
            publisher: split_id(card).0.to_owned(),
            arch: card.model_type.clone(),
            compatibility_type: "mlx",
            quantization: card.quantization.clone(),
            state: if is_loaded { "loaded" } else { "not-loaded" },
            max_context_length: card.context_length,
            loaded_context_length: card.context_length.filter(|_| is_loaded),
            capabilities: capabilities
                .into_iter()
                .filter_map(|(can, word)| can.then_some(word))
                .collect(),
        }
    }

    pub fn into_value(self) -> Value {
        json::value(&self)
    }
}

/// All local models, for `/api/v1/models`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::KeyedList)]
pub struct KeyedList {
    models: Vec<Keyed>,
}

/// One model in the words of `/api/v1`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::KeyedModel)]
pub struct Keyed {
    /// `llm` or `embedding`, which rerankers are called as well.
    r#type: &'static str,
    publisher: String,
    /// What requests name it by.
    key: String,
    display_name: String,
    /// Only of a model that generates text, as `capabilities` and `description`.
    #[serde(skip_serializing_if = "Option::is_none")]
    architecture: Option<String>,
    quantization: Option<Quantization>,
    size_bytes: u64,
    params_string: Option<String>,
    /// One while it is loaded, by the model's own key.
    loaded_instances: Vec<Instance>,
    max_context_length: Option<u32>,
    /// `mlx`.
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Capabilities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    description: Option<Value>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::Quantization)]
struct Quantization {
    name: String,
    bits_per_weight: Option<u32>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::Instance)]
struct Instance {
    id: String,
    config: InstanceConfig,
}

/// How a model is loaded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::InstanceConfig)]
pub(super) struct InstanceConfig {
    /// All that the model was made for.
    pub(super) context_length: Option<u32>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::Capabilities)]
struct Capabilities {
    vision: bool,
    trained_for_tool_use: bool,
    /// Only of a model that reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::ReasoningChoice)]
struct Reasoning {
    allowed_options: Vec<&'static str>,
    default: &'static str,
}

/// The list of `/api/v1/models`.
pub fn keyed_list(models: Vec<Keyed>) -> KeyedList {
    KeyedList { models }
}

impl Keyed {
    pub fn new(card: &ModelCard, traits: &ModelTraits, is_loaded: bool) -> Self {
        let (publisher, name) = split_id(card);
        let generates = card.task == ModelTask::Generate;
        Self {
            r#type: kind(card),
            publisher: publisher.to_owned(),
            key: card.id.clone(),
            display_name: name.to_owned(),
            architecture: generates.then(|| card.model_type.clone()),
            quantization: card.quantization.as_ref().map(|name| Quantization {
                bits_per_weight: bits(name),
                name: name.clone(),
            }),
            size_bytes: card.size_bytes,
            params_string: card.parameters.map(short),
            loaded_instances: is_loaded
                .then(|| Instance {
                    id: card.id.clone(),
                    config: InstanceConfig {
                        context_length: card.context_length,
                    },
                })
                .into_iter()
                .collect(),
            max_context_length: card.context_length,
            format: "mlx",
            capabilities: generates.then(|| Capabilities {
                vision: traits.sees_images,
                trained_for_tool_use: traits.tools.takes_tools(),
                reasoning: traits.reasons.then(|| Reasoning {
                    allowed_options: if traits.has_reasoning_switch {
                        vec!["off", "on"]
                    } else {
                        vec!["on"]
                    },
                    default: "on",
                }),
            }),
            description: generates.then_some(Value::Null),
        }
    }
}

/// `llm` or `embedding`.
pub(super) fn kind(card: &ModelCard) -> &'static str {
    match card.task {
        ModelTask::Generate => "llm",
        ModelTask::Embed | ModelTask::Rerank => "embedding",
    }
}

/// Publisher and name.
fn split_id(card: &ModelCard) -> (&str, &str) {
    card.id.split_once('/').unwrap_or(("local", &card.id))
}

/// The bits in `4-bit`, `bf16` or `float32`.
fn bits(quantization: &str) -> Option<u32> {
    let digits = quantization.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let end = digits
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// A count of parameters as people write it.
fn short(parameters: u64) -> String {
    let (unit, letter) = match parameters {
        1_000_000_000.. => (1e9, 'B'),
        1_000_000.. => (1e6, 'M'),
        _ => (1e3, 'K'),
    };
    let count = parameters as f64 / unit;
    if count < 9.95 {
        format!("{count:.1}{letter}")
    } else {
        format!("{count:.0}{letter}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn card() -> ModelCard {
        ModelCard {
            id: "org/small".into(),
            path: "/models/org/small".into(),
            model_type: "llama".into(),
            task: ModelTask::Generate,
            context_length: Some(2048),
            size_bytes: 1,
            quantization: Some("4-bit".into()),
            parameters: Some(134_515_008),
            modified_unix: 7,
            digest: String::new(),
            modelfile: None,
        }
    }

    #[test]
    fn editors_are_told_who_calls_tools_and_who_sees() {
        let able = ModelTraits {
            tools: macmlx_inference::ToolSupport::Generic,
            ..ModelTraits::default()
        };
        assert_eq!(
            Model::new(&card(), &able, true).into_value(),
            json!({
                "id": "org/small",
                "object": "model",
                "type": "llm",
                "publisher": "org",
                "arch": "llama",
                "compatibility_type": "mlx",
                "quantization": "4-bit",
                "state": "loaded",
                "max_context_length": 2048,
                "loaded_context_length": 2048,
                "capabilities": ["tool_use"],
            })
        );
        let seeing = ModelTraits {
            sees_images: true,
            ..ModelTraits::default()
        };
        let idle = Model::new(&card(), &seeing, false).into_value();
        assert_eq!(idle["type"], "vlm");
        assert_eq!(idle["state"], "not-loaded");
        assert_eq!(idle["capabilities"], json!(["vision"]));
        assert_eq!(idle.get("loaded_context_length"), None);
        for task in [ModelTask::Embed, ModelTask::Rerank] {
            let card = ModelCard { task, ..card() };
            let model = Model::new(&card, &ModelTraits::default(), false);
            assert_eq!(model.into_value()["type"], "embeddings");
        }
    }

    #[test]
    fn the_newer_list_has_its_own_words() {
        let able = ModelTraits {
            tools: macmlx_inference::ToolSupport::Generic,
            reasons: true,
            has_reasoning_switch: true,
            ..ModelTraits::default()
        };
        let list = keyed_list(vec![Keyed::new(&card(), &able, true)]);
        assert_eq!(
            json::value(&list),
            json!({"models": [{
                "type": "llm",
                "publisher": "org",
                "key": "org/small",
                "display_name": "small",
                "architecture": "llama",
                "quantization": {"name": "4-bit", "bits_per_weight": 4},
                "size_bytes": 1,
                "params_string": "135M",
                "loaded_instances": [{"id": "org/small", "config": {"context_length": 2048}}],
                "max_context_length": 2048,
                "format": "mlx",
                "capabilities": {
                    "vision": false,
                    "trained_for_tool_use": true,
                    "reasoning": {"allowed_options": ["off", "on"], "default": "on"},
                },
                "description": null,
            }]})
        );
        let embedder = ModelCard {
            task: ModelTask::Embed,
            quantization: None,
            ..card()
        };
        let model = json::value(&Keyed::new(&embedder, &ModelTraits::default(), false));
        assert_eq!(model["type"], "embedding");
        assert_eq!(model["loaded_instances"], json!([]));
        for absent in ["architecture", "capabilities", "description"] {
            assert_eq!(model.get(absent), None, "{absent}");
        }
    }

    #[test]
    fn numbers_as_people_write_them() {
        for (parameters, text) in [
            (134_515_008, "135M"),
            (7_241_732_096, "7.2B"),
            (70_553_706_496, "71B"),
            (3_400, "3.4K"),
        ] {
            assert_eq!(short(parameters), text);
        }
        for (quantization, expected) in [
            ("4-bit", Some(4)),
            ("bf16", Some(16)),
            ("float32", Some(32)),
            ("mxfp4", Some(4)),
            ("none", None),
        ] {
            assert_eq!(bits(quantization), expected, "{quantization}");
        }
    }
}
