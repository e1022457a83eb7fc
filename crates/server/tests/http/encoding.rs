//! Embeddings and reranking in every dialect.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::{FutureExt, future::BoxFuture};
use macmlx_inference::{
    Backend, EmbedRequest, Embeddings, InferenceError, Layer, ModelCard, ModelTask, ScriptedBackend,
};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Served, card, led, start_with_models};

/// A server with a model for each task.
async fn start(backend: impl Backend) -> Served {
    let models = [
        ("org/small", ModelTask::Generate),
        ("org/embed", ModelTask::Embed),
        ("org/rerank", ModelTask::Rerank),
    ];
    let models = models.map(|(id, task)| ModelCard { task, ..card(id) });
    start_with_models(Arc::new(backend), models.into()).await
}

async fn post(server: &Served, path: &str, body: Value) -> (StatusCode, Value) {
    let response = Client::new()
        .post(server.at(path))
        .json(&body)
        .send()
        .await
        .unwrap();
    (response.status(), response.json().await.unwrap())
}

#[tokio::test]
async fn vectors_come_as_numbers_or_as_bytes() {
    let server = start(ScriptedBackend::default()).await;
    let body = json!({"model": "m", "input": ["ab", "c"]});
    for path in ["/v1/embeddings", "/embeddings", "/v1/v1/embeddings"] {
        let (status, reply) = post(&server, path, body.clone()).await;
        assert_eq!(status, StatusCode::OK, "{path}: {reply}");
        assert_eq!(reply["data"][1]["embedding"], json!([0.0, 0.0, 1.0]));
        assert_eq!(
            reply["usage"],
            json!({"prompt_tokens": 3, "total_tokens": 3})
        );
    }
    let (_, numbers) = post(&server, "/v1/embeddings", body.clone()).await;
    let mut in_base64 = body;
    in_base64["encoding_format"] = "base64".into();
    let (_, bytes) = post(&server, "/v1/embeddings", in_base64).await;
    let bytes = bytes["data"][0]["embedding"].as_str().unwrap();
    let decoded: Vec<f32> = STANDARD
        .decode(bytes)
        .unwrap()
        .chunks_exact(4)
        .map(|number| f32::from_le_bytes(number.try_into().unwrap()))
        .collect();
    let numbers: Vec<f32> =
        serde_json::from_value(numbers["data"][0]["embedding"].clone()).unwrap();
    assert_eq!(numbers, decoded);
}

#[tokio::test]
async fn documents_are_ranked_wherever_clients_look() {
    let server = start(ScriptedBackend::default()).await;
    let body = json!({"model": "m", "query": "ab", "documents": ["a", "c", "ab"], "top_n": 2});
    for path in [
        "/v1/rerank",
        "/v1/reranking",
        "/rerank",
        "/v2/rerank",
        "/v1/v2/rerank",
    ] {
        let (status, reply) = post(&server, path, body.clone()).await;
        assert_eq!(status, StatusCode::OK, "{path}: {reply}");
        assert_eq!(
            reply["results"],
            json!([
                {"index": 2, "relevance_score": 1.0},
                {"index": 0, "relevance_score": 0.5},
            ])
        );
        assert_eq!(reply["usage"]["total_tokens"], 6);
    }
}

#[tokio::test]
async fn ollamas_clients_get_theirs() {
    let server = start(ScriptedBackend::default()).await;
    let body = json!({"model": "m", "input": ["a", "b"]});
    let (_, reply) = post(&server, "/api/embed", body).await;
    assert_eq!(
        reply["embeddings"],
        json!([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    );
    assert_eq!(reply["prompt_eval_count"], 2);
    let body = json!({"model": "m", "prompt": "b"});
    let (_, reply) = post(&server, "/api/embeddings", body).await;
    assert_eq!(reply, json!({"embedding": [0.0, 1.0, 0.0]}));
}

#[tokio::test]
async fn a_request_without_a_text_only_loads() {
    let server = start(ScriptedBackend::default()).await;
    for (path, body, expected) in [
        (
            "/api/embed",
            json!({"model": "org/small", "input": []}),
            json!({"model": "org/small", "embeddings": []}),
        ),
        (
            "/api/embed",
            json!({"model": "org/small", "keep_alive": 0}),
            json!({"model": "org/small", "embeddings": []}),
        ),
        (
            "/api/embeddings",
            json!({"model": "org/small", "prompt": ""}),
            json!({"embedding": []}),
        ),
    ] {
        let (status, reply) = post(&server, path, body).await;
        assert_eq!((status, reply), (StatusCode::OK, expected), "{path}");
    }
    let unknown = json!({"model": "gone", "keep_alive": 0});
    let (status, _) = post(&server, "/api/embed", unknown).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_model_that_only_generates_is_refused_by_name() {
    let (backend, _hand) = led();
    let server = start(backend).await;
    for (path, body) in [
        (
            "/v1/embeddings",
            json!({"model": "org/small", "input": "a"}),
        ),
        (
            "/v1/rerank",
            json!({"model": "org/small", "query": "a", "documents": ["b"]}),
        ),
        ("/api/embed", json!({"model": "org/small", "input": "a"})),
        (
            "/api/embeddings",
            json!({"model": "org/small", "prompt": "a"}),
        ),
    ] {
        let (status, reply) = post(&server, path, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        let message = match &reply["error"] {
            Value::String(message) => message,
            error => {
                assert_eq!(error["param"], "model");
                error["message"].as_str().unwrap()
            }
        };
        assert!(message.contains("`org/small`"), "{path}: {message}");
    }
}

#[tokio::test]
async fn wrong_bodies_are_the_callers_fault() {
    let server = start(ScriptedBackend::default()).await;
    for path in [
        "/v1/embeddings",
        "/v1/rerank",
        "/api/embed",
        "/api/embeddings",
    ] {
        for body in [
            json!({}),
            json!({"model": 1}),
            json!({"model": "org/embed", "input": 1}),
        ] {
            let (status, reply) = post(&server, path, body.clone()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path} {body}: {reply}");
        }
        let (status, reply) = post(&server, path, json!([])).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {reply}");
        assert!(reply.get("error").is_some());
    }
}

#[tokio::test]
async fn clients_are_told_what_a_model_is_for() {
    let models = [
        ("org/chat", ModelTask::Generate),
        ("org/embedder", ModelTask::Embed),
        ("org/reranker", ModelTask::Rerank),
    ]
    .map(|(id, task)| ModelCard { task, ..card(id) });
    let server = start_with_models(Arc::new(ScriptedBackend::default()), models.into()).await;
    let get = async |path: &str| -> Value {
        let response = reqwest::get(server.at(path)).await.unwrap();
        response.json().await.unwrap()
    };
    let of = |list: &Value, field: &str| -> Vec<Value> {
        let models = list.as_array().unwrap().iter();
        models.map(|model| model[field].clone()).collect()
    };
    let list = get("/v1/models").await;
    assert_eq!(of(&list["data"], "task"), ["generate", "embed", "rerank"]);
    let tags = get("/api/tags").await;
    let capabilities = [
        json!(["completion", "tools", "thinking", "insert"]),
        json!(["embedding"]),
        json!(["reranking"]),
    ];
    assert_eq!(of(&tags["models"], "capabilities"), capabilities);
    for (id, expected) in ["org/chat", "org/embedder", "org/reranker"]
        .into_iter()
        .zip(&capabilities)
    {
        let (_, shown) = post(&server, "/api/show", json!({"model": id})).await;
        assert_eq!(shown["capabilities"], *expected, "{id}");
    }
    let editors = get("/api/v0/models").await;
    assert_eq!(
        of(&editors["data"], "type"),
        ["llm", "embeddings", "embeddings"]
    );
    let anthropic = get("/anthropic/v1/models").await;
    let offered = of(&anthropic["data"], "id");
    assert!(
        offered
            .iter()
            .all(|id| id.as_str().unwrap().ends_with("org/chat")),
        "{offered:?}"
    );
}

/// A backend that never answers, and tells when no request waits any more.
struct Stuck {
    inner: ScriptedBackend,
    asked: Arc<Notify>,
    is_dropped: Arc<AtomicBool>,
}

struct ReportsDrop(Arc<AtomicBool>);

impl Drop for ReportsDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Layer for Stuck {
    fn inner(&self) -> &dyn Backend {
        &self.inner
    }

    fn embed(
        &self,
        _: Arc<ModelCard>,
        _: EmbedRequest,
    ) -> BoxFuture<'_, Result<Embeddings, InferenceError>> {
        let reports_drop = ReportsDrop(self.is_dropped.clone());
        async move {
            let _held = reports_drop;
            self.asked.notify_one();
            std::future::pending().await
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_the_work() {
    for path in ["/v1/embeddings", "/api/embed"] {
        let (asked, is_dropped) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let backend = Stuck {
            inner: ScriptedBackend::default(),
            asked: asked.clone(),
            is_dropped: is_dropped.clone(),
        };
        let server = start(backend).await;
        tokio::select! {
            answer = post(&server, path, json!({"model": "m", "input": "a"})) => {
                panic!("{path}: {answer:?}");
            }
            () = asked.notified() => {}
        }
        let dropped = async {
            while !is_dropped.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), dropped)
            .await
            .unwrap();
    }
}
