//! `POST /api/v1/models/load` and `/api/v1/models/unload`.

use std::time::Duration;

use macmlx_inference::{KeepAlive, ModelCard};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::models::{InstanceConfig, kind};
use crate::{Error, json, keep_alive, words::refuse_others};

/// What is to be loaded.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = lm_studio::LoadRequest)]
pub struct LoadRequest {
    pub model: String,
    /// Taken and without effect: a model can always use all of its context, which takes memory only
    /// as far as it is used.
    #[expect(dead_code, reason = "named for the document, its type checked")]
    context_length: Option<u32>,
    /// Tell how the model is loaded.
    echo_load_config: Option<bool>,
    /// Seconds that the model stays in memory after its last use.
    ttl: Option<Value>,
    /// The same in Ollama's word; `ttl` has the say.
    keep_alive: Option<Value>,
}

/// What is loaded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = lm_studio::Loaded)]
pub struct Loaded {
    /// `llm` or `embedding`.
    r#type: &'static str,
    instance_id: String,
    load_time_seconds: f64,
    /// `loaded`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_config: Option<InstanceConfig>,
}

/// What is to go from memory, and what has gone.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = lm_studio::Unload)]
pub struct Unload {
    pub instance_id: String,
}

/// How long a model is to stay, in LM Studio's word or in Ollama's.
pub(super) fn stay(
    ttl: Option<&Value>,
    keep_alive: Option<&Value>,
) -> Result<Option<KeepAlive>, Error> {
    let ttl = keep_alive::read_as("ttl", ttl)?;
    let keep_alive = keep_alive::read(keep_alive)?;
    Ok(ttl.or(keep_alive))
}

/// What may be sent to load a model. The last four are about another engine and have no effect on
/// this one, by LM Studio's own word.
const LOAD_FIELDS: &[&str] = &[
    "model",
    "context_length",
    "echo_load_config",
    "ttl",
    "keep_alive",
    "eval_batch_size",
    "flash_attention",
    "num_experts",
    "offload_kv_cache_to_gpu",
];

impl LoadRequest {
    /// Reads the body. Errors name the field.
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        let body = json::object(body)?;
        refuse_others(&body, LOAD_FIELDS)?;
        let request: Self = json::fields(&body)?;
        stay(request.ttl.as_ref(), request.keep_alive.as_ref())?;
        Ok(request)
    }

    /// How long the model is to stay in memory, where the client says it.
    pub fn keep_alive(&self) -> Option<KeepAlive> {
        stay(self.ttl.as_ref(), self.keep_alive.as_ref())
            .ok()
            .flatten()
    }

    /// The reply once the model is loaded.
    pub fn reply(&self, card: &ModelCard, load_time: Duration) -> Loaded {
        let tells_config = self.echo_load_config == Some(true);
        Loaded {
            r#type: kind(card),
            instance_id: card.id.clone(),
            load_time_seconds: load_time.as_secs_f64(),
            status: "loaded",
            load_config: tells_config.then_some(InstanceConfig {
                context_length: card.context_length,
            }),
        }
    }
}

impl Unload {
    /// Reads the body. Errors name the field.
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        let body = json::object(body)?;
        refuse_others(&body, &["instance_id"])?;
        let unload: Self = json::fields(&body)?;
        if unload.instance_id.trim().is_empty() {
            return Err(Error::invalid(
                "instance_id",
                "instance_id is empty; name a model",
            ));
        }
        Ok(unload)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_model_stays_as_either_word_says() {
        for (ttl, keep_alive, seconds) in [
            (json!(5), json!(null), Some(5)),
            (json!(null), json!("1m"), Some(60)),
            (json!(5), json!("1m"), Some(5)),
            (json!(null), json!(null), None),
        ] {
            let body = json!({"model": "a", "ttl": ttl, "keep_alive": keep_alive});
            let request = LoadRequest::parse(body.to_string().as_bytes()).unwrap();
            let stay = seconds.map(|seconds| KeepAlive::For(Duration::from_secs(seconds)));
            assert_eq!(request.keep_alive(), stay, "{body}");
        }
    }

    #[test]
    fn bodies_are_read_and_strange_fields_refused() {
        let body = json!({
            "model": "org/small",
            "context_length": 16384,
            "flash_attention": true,
            "echo_load_config": null,
        });
        let request = LoadRequest::parse(body.to_string().as_bytes()).unwrap();
        assert_eq!(request.model, "org/small");
        for (body, param) in [
            (json!({"model": "a", "ttl": "soon"}), "ttl"),
            (json!({"model": "a", "keep_alive": true}), "keep_alive"),
            (json!({"model": "a", "lora": "b"}), "lora"),
            (json!({"context_length": 5}), "model"),
            (
                json!({"model": "a", "context_length": "long"}),
                "context_length",
            ),
        ] {
            let error = LoadRequest::parse(body.to_string().as_bytes()).unwrap_err();
            assert!(error.to_string().contains(param), "{error}");
        }
        assert!(Unload::parse(b"{\"instance_id\": \"a\"}").is_ok());
        assert!(Unload::parse(b"{\"model\": \"a\"}").is_err());
    }
}
