//! `GET /v1/models` and `GET /v1/models/{id}`, and both as LM Studio has them below `/api/v0`.

use macmlx_inference::{ModelCard, ModelTask, ModelTraits};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::json;

/// All local models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    object: &'static str,
    data: Vec<Model>,
    /// Always empty: Codex reads its own descriptions of models here and wants the field.
    models: Vec<Value>,
}

/// One model. The context length is there twice, as OpenRouter and as vLLM spell it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Model {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: String,
    context_length: Option<u32>,
    max_model_len: Option<u32>,
    /// `generate`, `embed` or `rerank`.
    #[schema(value_type = String)]
    task: ModelTask,
}

/// The list of all local models.
pub fn list(cards: &[ModelCard]) -> Value {
    json::value(&ModelList {
        object: "list",
        data: cards.iter().map(Model::new).collect(),
        models: Vec::new(),
    })
}

/// One model.
pub fn model(card: &ModelCard) -> Value {
    json::value(&Model::new(card))
}

impl Model {
    fn new(card: &ModelCard) -> Self {
        Self {
            id: card.id.clone(),
            object: "model",
            created: card.modified_unix,
            owned_by: owner(card).to_owned(),
            context_length: card.context_length,
            max_model_len: card.context_length,
            task: card.task,
        }
    }
}

fn owner(card: &ModelCard) -> &str {
    card.id.split_once('/').map_or("local", |(owner, _)| owner)
}

/// All local models with what they can do.
#[derive(Debug, Serialize, ToSchema)]
pub struct LmStudioList {
    object: &'static str,
    data: Vec<LmStudioModel>,
}

/// One model as LM Studio describes it.
#[derive(Debug, Serialize, ToSchema)]
pub struct LmStudioModel {
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
    /// `tool_use` for a model that calls tools.
    capabilities: Vec<&'static str>,
}

/// The list in LM Studio's shape.
pub fn lm_studio_list(models: Vec<LmStudioModel>) -> Value {
    json::value(&LmStudioList {
        object: "list",
        data: models,
    })
}

impl LmStudioModel {
    pub fn new(card: &ModelCard, traits: &ModelTraits, is_loaded: bool) -> Self {
        Self {
            id: card.id.clone(),
            object: "model",
            r#type: match card.task {
                ModelTask::Generate if traits.sees_images => "vlm",
                ModelTask::Generate => "llm",
                ModelTask::Embed | ModelTask::Rerank => "embeddings",
            },
            publisher: owner(card).to_owned(),
            arch: card.model_type.clone(),
            compatibility_type: "mlx",
            quantization: card.quantization.clone(),
            state: if is_loaded { "loaded" } else { "not-loaded" },
            max_context_length: card.context_length,
            loaded_context_length: card.context_length.filter(|_| is_loaded),
            capabilities: if traits.tools.takes_tools() {
                vec!["tool_use"]
            } else {
                Vec::new()
            },
        }
    }

    pub fn into_value(self) -> Value {
        json::value(&self)
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
            task: macmlx_inference::ModelTask::Generate,
            context_length: Some(2048),
            size_bytes: 1,
            quantization: Some("4-bit".into()),
            parameters: None,
            modified_unix: 7,
            digest: String::new(),
        }
    }

    #[test]
    fn a_model_has_all_that_clients_read() {
        assert_eq!(
            list(&[card()]),
            json!({
                "object": "list",
                "data": [{
                    "id": "org/small",
                    "object": "model",
                    "created": 7,
                    "owned_by": "org",
                    "context_length": 2048,
                    "max_model_len": 2048,
                    "task": "generate",
                }],
                "models": [],
            })
        );
    }

    #[test]
    fn editors_are_told_who_calls_tools() {
        let able = ModelTraits {
            tools: macmlx_inference::ToolSupport::Generic,
            ..ModelTraits::default()
        };
        assert_eq!(
            LmStudioModel::new(&card(), &able, true).into_value(),
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
        let idle = LmStudioModel::new(&card(), &seeing, false).into_value();
        assert_eq!(idle["type"], "vlm");
        assert_eq!(idle["state"], "not-loaded");
        assert_eq!(idle["capabilities"], json!([]));
        assert_eq!(idle.get("loaded_context_length"), None);
        for task in [ModelTask::Embed, ModelTask::Rerank] {
            let card = ModelCard { task, ..card() };
            let model = LmStudioModel::new(&card, &ModelTraits::default(), false);
            assert_eq!(model.into_value()["type"], "embeddings");
        }
    }
}
