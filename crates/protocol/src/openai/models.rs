//! `GET /v1/models` and `GET /v1/models/{id}`.

use macmlx_inference::ModelCard;
use serde_json::{Value, json};

/// The list of all local models.
pub fn list(cards: &[ModelCard]) -> Value {
    json!({
        "object": "list",
        "data": cards.iter().map(model).collect::<Vec<_>>(),
    })
}

/// One model. The context length is there twice, as OpenRouter and as vLLM spell it.
pub fn model(card: &ModelCard) -> Value {
    let owner = card.id.split_once('/').map_or("local", |(owner, _)| owner);
    json!({
        "id": card.id,
        "object": "model",
        "created": card.modified_unix,
        "owned_by": owner,
        "context_length": card.context_length,
        "max_model_len": card.context_length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_all_that_clients_read() {
        let card = ModelCard {
            id: "org/small".into(),
            path: "/models/org/small".into(),
            model_type: "llama".into(),
            context_length: Some(2048),
            size_bytes: 1,
            quantization: None,
            parameters: None,
            modified_unix: 7,
        };
        assert_eq!(
            list(&[card]),
            json!({"object": "list", "data": [{
                "id": "org/small",
                "object": "model",
                "created": 7,
                "owned_by": "org",
                "context_length": 2048,
                "max_model_len": 2048,
            }]})
        );
    }
}
