//! `/x/models`.

use std::{fs, sync::Arc, time::Duration};

use axum::http::StatusCode;
use futures::{FutureExt, StreamExt, future::BoxFuture};
use macmlx_control::events::Event;
use macmlx_inference::{
    Backend, EventStream, FilesRequest, GenerateRequest, InferenceError, LoadedModel, ModelCard,
    ModelTraits, TokenizeRequest, ToolSupport,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::Running;

#[tokio::test]
async fn models_are_loaded_by_either_name() {
    let running = Running::new();
    running.put_model("m", "llama");
    for body in [r#"{"model": "m"}"#, r#"{"model_path": "m"}"#] {
        let (status, reply) = running.call("POST", "/x/models/load", body).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(reply["model"], "m");
        assert_eq!(reply["status"], "loaded");
    }
    let (status, reply) = running.call("POST", "/x/models/load", "nonsense").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(reply["error"]["code"], "invalid_request");
}

#[tokio::test]
async fn unloading_nothing_is_fine() {
    let running = Running::new();
    running.put_model("m", "llama");
    for body in ["", r#"{"model": "m"}"#] {
        let (status, reply) = running.call("POST", "/x/models/unload", body).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(reply["status"], "unloaded");
    }
    // Another model is not loaded or dropped in place of one that is not here.
    for path in ["/x/models/load", "/x/models/unload"] {
        let (status, reply) = running.call("POST", path, r#"{"model": "gpt-4o"}"#).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(reply["error"]["code"], "model_not_found");
    }
}

#[tokio::test]
async fn models_are_listed_usable_or_not() {
    let running = Running::new();
    running.put_model("org/one", "llama");
    running.put_model("org/other", "exotic");
    let half = running.folder.path().join("models/half");
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join("config.json"), r#"{"model_type": "llama"}"#).unwrap();
    running.aliases.add("gpt-4o", "org/one").unwrap();
    let patch = r#"{"defaultModel": "one"}"#;
    running.call("PATCH", "/x/settings", patch).await;

    let listed = running.get("/x/models").await;
    let models = listed["models"].as_array().unwrap();
    let ids: Vec<&str> = models.iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["half", "org/one", "org/other"]);
    let [half, one, other] = models.as_slice() else {
        panic!("{listed}");
    };
    assert_eq!(half["state"], "incomplete");
    assert!(half["reason"].as_str().unwrap().contains("weights"));
    assert_eq!(half["is_supported"], false);
    assert!(half["size_bytes"].as_u64().unwrap() > 0);
    assert_eq!(one["state"], "complete");
    assert_eq!(one["is_supported"], true);
    assert_eq!(one["is_default"], true);
    assert_eq!(listed["chosen"], "org/one");
    assert_eq!(one["aliases"], json!(["gpt-4o"]));
    assert_eq!(one["context_length"], 2048);
    assert_eq!(one["memory_bytes"], Value::Null);
    assert_eq!(other["is_supported"], false);
    let reason = other["unsupported_reason"].as_str().unwrap();
    assert!(reason.contains("exotic"));
}

#[tokio::test]
async fn a_model_is_shown_with_its_files_and_whether_it_fits() {
    let running = Running::new();
    running.put_model("org/one", "llama");
    let shown = running.get("/x/models/org%2Fone").await;
    assert_eq!(shown["id"], "org/one");
    assert_eq!(shown["config"]["hidden_size"], 64);
    assert_eq!(shown["generation_config"], Value::Null);
    assert_eq!(shown["files"][0]["path"], "config.json");
    assert_eq!(shown["fit"]["verdict"], "fits");
    assert_eq!(shown["fit"]["context_tokens"], 2048);
    let short = running
        .get("/x/models/org%2Fone/fit?context_tokens=16")
        .await;
    assert_eq!(short["context_tokens"], 16);
    assert!(short["kv_cache_bytes"].as_u64() < shown["fit"]["kv_cache_bytes"].as_u64());
    for wrong in ["0", "-1", "x"] {
        let path = format!("/x/models/org%2Fone/fit?context_tokens={wrong}");
        let (status, _) = running.call("GET", &path, "").await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
    // The beginning of a name is no name here.
    for path in ["/x/models/one", "/x/models/one/fit"] {
        let (status, body) = running.call("GET", path, "").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert_eq!(body["error"]["code"], "model_not_found");
    }
}

#[tokio::test]
async fn a_model_is_deleted_by_its_whole_name() {
    let running = Running::new();
    running.put_model("org/one", "llama");
    let mut told = Box::pin(running.events.subscribe());
    let (status, _) = running.call("DELETE", "/x/models/one", "").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, body) = running.call("DELETE", "/x/models/org%2Fone", "").await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert_eq!(body["id"], "org/one");
    assert!(body["freed_bytes"].as_u64().unwrap() > 0);
    let asked = running.files.requests();
    assert_eq!(asked, [FilesRequest::Delete("org/one".into())]);
    assert!(matches!(told.next().await, Some(Event::ModelsChanged)));
}

/// One place in memory, and a model that cannot be loaded.
#[derive(Default)]
struct Pool(Mutex<Vec<LoadedModel>>);

impl Pool {
    fn load(&self, model: &str, active_requests: u32) {
        *self.0.lock() = vec![LoadedModel {
            id: model.into(),
            memory_bytes: 7,
            active_requests,
            idle: Duration::ZERO,
            expires_in: None,
            weights: "float32".into(),
        }];
    }
}

fn unused<T>() -> BoxFuture<'static, Result<T, InferenceError>> {
    async { Err(InferenceError::Cancelled) }.boxed()
}

impl Backend for Pool {
    fn generate(
        &self,
        _: Arc<ModelCard>,
        _: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        unused()
    }

    fn tokenize(
        &self,
        _: Arc<ModelCard>,
        _: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        unused()
    }

    fn detokenize(
        &self,
        _: Arc<ModelCard>,
        _: Vec<u32>,
    ) -> BoxFuture<'_, Result<String, InferenceError>> {
        unused()
    }

    fn traits(&self, _: Arc<ModelCard>) -> BoxFuture<'_, Result<ModelTraits, InferenceError>> {
        let traits = ModelTraits {
            chat_template: Some("{{ messages }}".into()),
            tools: ToolSupport::Generic,
            ..ModelTraits::default()
        };
        async { Ok(traits) }.boxed()
    }

    fn load(&self, model: Arc<ModelCard>) -> BoxFuture<'_, Result<(), InferenceError>> {
        async move {
            if model.id == "org/broken" {
                return Err(InferenceError::ModelLoad {
                    model: model.id.clone(),
                    reason: "damaged".into(),
                });
            }
            Self::load(self, &model.id, 0);
            Ok(())
        }
        .boxed()
    }

    fn unload(&self, _: String) -> BoxFuture<'_, Result<bool, InferenceError>> {
        let was_loaded = !std::mem::take(&mut *self.0.lock()).is_empty();
        async move { Ok(was_loaded) }.boxed()
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        self.0.lock().clone()
    }
}

#[tokio::test]
async fn models_that_come_and_go_are_told() {
    let running = Running::with(Arc::new(Pool::default()));
    for id in ["org/one", "org/two", "org/broken"] {
        running.put_model(id, "llama");
    }
    let told = running.events.subscribe();
    for id in ["org/one", "org/two", "org/broken"] {
        let body = format!(r#"{{"model": "{id}"}}"#);
        running.call("POST", "/x/models/load", &body).await;
    }
    running.call("POST", "/x/models/unload", "").await;
    let told: Vec<String> = told
        .take(8)
        .map(|event| {
            let event = serde_json::to_value(event).unwrap();
            format!(
                "{} {}",
                event["id"].as_str().unwrap(),
                event["state"].as_str().unwrap()
            )
        })
        .collect()
        .await;
    assert_eq!(
        told,
        [
            "org/one loading",
            "org/one loaded",
            "org/two loading",
            "org/two loaded",
            "org/one unloaded",
            "org/broken loading",
            "org/broken failed",
            "org/two unloaded",
        ]
    );
}

#[tokio::test]
async fn a_model_that_answers_is_not_deleted() {
    let pool = Arc::new(Pool::default());
    let running = Running::with(pool.clone());
    running.put_model("org/one", "llama");
    pool.load("org/one", 1);
    let listed = running.get("/x/models").await;
    let one = &listed["models"][0];
    assert_eq!(one["is_loaded"], true);
    assert_eq!(one["memory_bytes"], 7);
    assert_eq!(
        one["capabilities"],
        json!({
            "chat": true, "tools": "generic", "reasoning": false, "images": false,
            "embedding": false, "reranking": false,
        })
    );
    let (status, body) = running.call("DELETE", "/x/models/org%2Fone", "").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(body["error"]["code"], "busy");
    assert!(running.files.requests().is_empty());
    assert_eq!(running.backend.loaded().len(), 1);
}

#[tokio::test]
async fn models_that_read_are_told_from_models_that_write() {
    let running = Running::new();
    running.put_model("org/bert", "bert");
    running.put_model("org/bert-reranker", "bert");
    let config = running
        .folder
        .path()
        .join("models/org/bert-reranker/config.json");
    let mut facts: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    facts["architectures"] = json!(["BertForSequenceClassification"]);
    std::fs::write(&config, facts.to_string()).unwrap();
    running.put_model("org/electra", "electra");
    facts["model_type"] = json!("electra");
    facts["architectures"] = json!(["ElectraForPreTraining"]);
    let config = running.folder.path().join("models/org/electra/config.json");
    std::fs::write(&config, facts.to_string()).unwrap();
    running.put_model("org/llama", "llama");
    let listed = running.get("/x/models").await;
    let told: Vec<_> = listed["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| {
            let able = model["capabilities"].as_object().unwrap();
            let able = able
                .iter()
                .filter(|(_, is_able)| **is_able == true || **is_able == "native");
            let able: Vec<_> = able.map(|(name, _)| name.as_str()).collect();
            (model["is_supported"].as_bool().unwrap(), able.join(" "))
        })
        .collect();
    assert_eq!(
        told,
        [
            (true, "embedding".into()),
            (true, "reranking".into()),
            (false, "embedding".into()),
            (true, "chat tools reasoning".into()),
        ]
    );
}
