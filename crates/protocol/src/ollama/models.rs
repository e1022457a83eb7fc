//! `GET /api/tags`, `GET /api/ps` and `GET /api/version`.

use std::time::Duration;

use macmlx_inference::{LoadedModel, ModelCard, ModelTask, ModelTraits, rfc3339};
use serde::Serialize;
use utoipa::ToSchema;

use crate::keep_alive::expiry;

/// What kind of model it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ollama::Details)]
pub struct Details {
    /// The model that it was made from with `/api/create`.
    pub parent_model: String,
    /// Always `safetensors`.
    pub format: &'static str,
    /// `model_type` of its config.
    pub family: String,
    pub families: Vec<String>,
    /// The size as people write it: `8.2B`.
    pub parameter_size: String,
    /// The quantization as people write it: `4-bit`, `bf16`.
    pub quantization_level: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u32>,
}

impl Details {
    pub(super) fn of(card: &ModelCard) -> Self {
        Self {
            parent_model: card
                .modelfile
                .as_ref()
                .map(|modelfile| modelfile.from.clone())
                .unwrap_or_default(),
            format: "safetensors",
            family: card.model_type.clone(),
            families: vec![card.model_type.clone()],
            parameter_size: card.parameters.map(in_words).unwrap_or_default(),
            quantization_level: card.quantization.clone().unwrap_or_default(),
            context_length: card.context_length,
        }
    }
}

/// What a model can do. Ollama has no word for reranking.
pub(super) fn capabilities(card: &ModelCard, traits: &ModelTraits) -> Vec<&'static str> {
    match card.task {
        ModelTask::Generate => [
            ("completion", true),
            ("tools", traits.tools.takes_tools()),
            ("thinking", traits.reasons),
            ("vision", traits.sees_images),
            ("insert", traits.fills_in),
        ]
        .into_iter()
        .filter_map(|(name, has_it)| has_it.then_some(name))
        .collect(),
        ModelTask::Embed => vec!["embedding"],
        ModelTask::Rerank => vec!["reranking"],
    }
}

/// A number of parameters as people write it.
fn in_words(count: u64) -> String {
    let (unit, letter, decimals) = match count {
        1_000_000_000.. => (1e9, "B", 1),
        1_000_000.. => (1e6, "M", 2),
        1_000.. => (1e3, "K", 0),
        _ => return count.to_string(),
    };
    let number = count as f64 / unit;
    if number.fract() == 0.0 {
        format!("{number:.0}{letter}")
    } else {
        format!("{number:.decimals$}{letter}")
    }
}

/// The local models.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::Tags)]
pub struct Tags {
    models: Vec<Tag>,
}

/// A local model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::Tag)]
pub struct Tag {
    name: String,
    model: String,
    /// RFC 3339.
    modified_at: String,
    /// Bytes of the weight files.
    size: u64,
    /// 64 hexadecimal digits, shared by copies of a model and by nothing else.
    digest: String,
    details: Details,
    /// The capabilities that `/api/show` lists.
    capabilities: Vec<&'static str>,
}

/// The reply of `/api/tags`, the model that changed last first.
pub fn tags(mut models: Vec<(ModelCard, ModelTraits)>) -> Tags {
    models.sort_by_key(|(card, _)| std::cmp::Reverse(card.modified_unix));
    Tags {
        models: models
            .into_iter()
            .map(|(card, traits)| Tag {
                modified_at: rfc3339(card.modified_unix),
                details: Details::of(&card),
                capabilities: capabilities(&card, &traits),
                name: card.id.clone(),
                model: card.id,
                size: card.size_bytes,
                digest: card.digest,
            })
            .collect(),
    }
}

/// The models in memory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::Processes)]
pub struct Processes {
    models: Vec<Process>,
}

/// A model in memory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::Process)]
pub struct Process {
    name: String,
    model: String,
    /// Bytes in memory.
    size: u64,
    digest: String,
    details: Details,
    /// RFC 3339. Centuries ahead: for ever.
    expires_at: String,
    /// Bytes that the GPU uses.
    size_vram: u64,
    /// Tokens.
    context_length: u32,
}

/// A model in memory, with what else `/api/ps` says of it.
#[derive(Debug)]
pub struct Running {
    pub loaded: LoadedModel,
    pub card: ModelCard,
    /// Its weights are in memory that the GPU uses.
    pub is_on_gpu: bool,
}

/// The reply of `/api/ps`, the model that stays longest first.
pub fn processes(mut running: Vec<Running>, now_unix: u64) -> Processes {
    running
        .sort_by_key(|model| std::cmp::Reverse(model.loaded.expires_in.unwrap_or(Duration::MAX)));
    Processes {
        models: running
            .into_iter()
            .map(|model| Process {
                details: Details::of(&model.card),
                name: model.loaded.id.clone(),
                model: model.loaded.id,
                size: model.loaded.memory_bytes,
                digest: model.card.digest,
                expires_at: expiry(now_unix, model.loaded.expires_in),
                size_vram: if model.is_on_gpu {
                    model.loaded.memory_bytes
                } else {
                    0
                },
                context_length: model.card.context_length.unwrap_or(0),
            })
            .collect(),
    }
}

/// The reply of `/api/version`. Clients compare it with the version of Ollama that a feature came
/// with, so it is that of the API spoken here.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::Version)]
pub struct Version {
    version: &'static str,
}

impl Version {
    /// The API this dialect follows.
    pub const SPOKEN: Self = Self { version: "0.32.15" };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    pub(in crate::ollama) fn card(id: &str, modified_unix: u64) -> ModelCard {
        ModelCard {
            id: id.into(),
            path: "/models".into(),
            model_type: "qwen3".into(),
            task: macmlx_inference::ModelTask::Generate,
            context_length: Some(40_960),
            size_bytes: 5,
            quantization: Some("4-bit".into()),
            parameters: Some(8_190_735_360),
            modified_unix,
            digest: "ab".repeat(32),
            modelfile: None,
        }
    }

    #[test]
    fn numbers_as_people_write_them() {
        for (count, words) in [
            (999, "999"),
            (134_515_008, "134.52M"),
            (8_190_735_360, "8.2B"),
            (7_000_000_000, "7B"),
            (5_000, "5K"),
        ] {
            assert_eq!(in_words(count), words);
        }
    }

    #[test]
    fn tags_have_what_clients_read() {
        let embedder = ModelCard {
            task: ModelTask::Embed,
            ..card("a/old", 1)
        };
        let models = [embedder, card("b/new", 1_700_000_000)];
        let tags = json!(tags(
            models.map(|card| (card, ModelTraits::default())).into()
        ));
        assert_eq!(tags["models"][1]["name"], "a/old");
        assert_eq!(tags["models"][1]["capabilities"], json!(["embedding"]));
        assert_eq!(
            tags["models"][0],
            json!({
                "name": "b/new",
                "model": "b/new",
                "modified_at": "2023-11-14T22:13:20Z",
                "size": 5,
                "digest": "ab".repeat(32),
                "details": {
                    "parent_model": "",
                    "format": "safetensors",
                    "family": "qwen3",
                    "families": ["qwen3"],
                    "parameter_size": "8.2B",
                    "quantization_level": "4-bit",
                    "context_length": 40_960,
                },
                "capabilities": ["completion"],
            })
        );
    }

    #[test]
    fn models_in_memory_say_how_long_they_stay() {
        let running = |id: &str, expires_in, is_on_gpu| Running {
            loaded: LoadedModel {
                id: id.into(),
                memory_bytes: 9,
                active_requests: 0,
                idle: Duration::ZERO,
                expires_in,
                weights: String::new(),
            },
            card: card(id, 0),
            is_on_gpu,
        };
        let reply = json!(processes(
            vec![
                running("short", Some(Duration::from_mins(1)), false),
                running("ever", None, true),
            ],
            1_700_000_000,
        ));
        let [ever, short] = [&reply["models"][0], &reply["models"][1]];
        assert_eq!(
            (&ever["model"], &ever["expires_at"], &ever["size_vram"]),
            (&json!("ever"), &json!("2316-02-24T22:00:36Z"), &json!(9))
        );
        assert_eq!(
            (&short["expires_at"], &short["size_vram"], &short["size"]),
            (&json!("2023-11-14T22:14:20Z"), &json!(0), &json!(9))
        );
        assert_eq!(short["context_length"], 40_960);
    }
}
