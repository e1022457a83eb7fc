//! `GET /v1/models` and `GET /v1/models/{id}`.

use macmlx_inference::{ModelCard, ModelTask};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::json;

/// All local models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    object: &'static str,
    data: Vec<Model>,
    /// Only for Codex, and empty: it reads its own descriptions of models here and wants the field.
    /// Other clients would take it for the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    models: Option<[(); 0]>,
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

/// The list of all local models. `query`: of the request's URL.
pub fn list(cards: &[ModelCard], query: Option<&str>) -> Value {
    json::value(&ModelList {
        object: "list",
        data: cards.iter().map(Model::new).collect(),
        models: is_codex(query).then_some([]),
    })
}

/// Codex tells its version where it asks for the list, and no other client does.
fn is_codex(query: Option<&str>) -> bool {
    let mut parameters = query.unwrap_or_default().split('&');
    parameters.any(|parameter| parameter.starts_with("client_version="))
}

/// What is told once a model's files are gone.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = openai::DeletedModel)]
pub struct DeletedModel {
    id: String,
    object: &'static str,
    deleted: bool,
}

/// A model that was deleted.
pub fn deleted(id: String) -> Value {
    json::value(&DeletedModel {
        id,
        object: "model",
        deleted: true,
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
            modelfile: None,
        }
    }

    #[test]
    fn a_model_has_all_that_clients_read() {
        assert_eq!(
            list(&[card()], None),
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
            })
        );
    }

    #[test]
    fn only_codex_sees_a_list_without_models() {
        for (query, is_codex) in [
            (None, false),
            (Some(""), false),
            (Some("limit=5"), false),
            (Some("client_version=0.99.0"), true),
            (Some("limit=5&client_version=0.99.0"), true),
        ] {
            let list = list(&[card()], query);
            let expected = json!([]);
            assert_eq!(
                list.get("models"),
                is_codex.then_some(&expected),
                "{query:?}"
            );
        }
    }
}
