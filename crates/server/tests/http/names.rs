//! Names that no model here has: requests are answered all the same, questions are not.

use std::sync::Arc;

use macmlx_inference::{ModelCard, ModelTask, ScriptedBackend};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Served, card, says, start_with_models};

/// Model names that clients have by default.
pub(crate) const FOREIGN: [&str; 5] = [
    "gpt-4o",
    "llama3.2:latest",
    "openai/gpt-4o-mini",
    "models/gemini-pro",
    "模型 🦙",
];

pub(crate) async fn server(answers: usize) -> Served {
    let mut backend = ScriptedBackend::default();
    for _ in 0..answers {
        backend = backend.then_events(says(&["Hi."]));
    }
    let models = [
        ("org/small", ModelTask::Generate),
        ("org/embed", ModelTask::Embed),
        ("org/rerank", ModelTask::Rerank),
    ];
    let models = models.map(|(id, task)| ModelCard { task, ..card(id) });
    start_with_models(Arc::new(backend), models.into()).await
}

async fn call(server: &Served, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
    let mut request = Client::new().request(method, server.at(path));
    if !body.is_null() {
        request = request.json(&body);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap_or_default())
}

#[tokio::test]
async fn a_request_for_any_name_is_answered_in_every_dialect() {
    let turn = json!([{"role": "user", "content": "Hi"}]);
    let server = server(6 * FOREIGN.len()).await;
    for name in FOREIGN {
        for (path, body) in [
            ("/v1/chat/completions", json!({"messages": turn})),
            ("/v1/completions", json!({"prompt": "Hi"})),
            ("/infill", json!({"input_prefix": "a", "input_suffix": "b"})),
            ("/v1/responses", json!({"input": "Hi"})),
            ("/v1/messages", json!({"messages": turn, "max_tokens": 1})),
            ("/api/chat", json!({"messages": turn, "stream": false})),
            ("/v1/embeddings", json!({"input": "a"})),
            ("/api/embed", json!({"input": "a"})),
            ("/v1/rerank", json!({"query": "a", "documents": ["b"]})),
            ("/v1/messages/count_tokens", json!({"messages": turn})),
            ("/v1/responses/input_tokens", json!({"input": "Hi"})),
            ("/v1/tokenize", json!({"prompt": "Hi"})),
            ("/v1/detokenize", json!({"tokens": [97]})),
        ] {
            let mut body = body;
            body["model"] = name.into();
            let (status, reply) = call(&server, Method::POST, path, body).await;
            assert_eq!(status, StatusCode::OK, "{path} {name}: {reply}");
        }
    }
}

#[tokio::test]
async fn a_gap_is_filled_by_the_model_that_answers_where_none_is_named() {
    let server = server(1).await;
    let gap = json!({"input_prefix": "a", "input_suffix": "b"});
    let (status, reply) = call(&server, Method::POST, "/infill", gap).await;
    assert_eq!(status, StatusCode::OK, "{reply}");
    assert_eq!(reply["content"], "Hi.");
    assert_eq!(reply["model"], "org/small");
}

#[tokio::test]
async fn a_question_about_a_model_knows_only_what_is_here() {
    let server = server(0).await;
    let (openai, anthropic, ollama) = ("/error/code", "/error/type", "/error");
    for (method, path, body, place) in [
        (Method::GET, "/v1/models/gpt-4o", Value::Null, openai),
        (Method::GET, "/v1/models/org/gone", Value::Null, openai),
        (Method::GET, "/api/v0/models/gpt-4o", Value::Null, openai),
        (
            Method::GET,
            "/anthropic/v1/models/claude-opus-4",
            Value::Null,
            anthropic,
        ),
        (
            Method::POST,
            "/api/show",
            json!({"model": "gpt-4o"}),
            ollama,
        ),
        (
            Method::POST,
            "/api/show",
            json!({"model": "llama3.2:latest"}),
            ollama,
        ),
        (
            Method::POST,
            "/api/generate",
            json!({"model": "gpt-4o", "keep_alive": 0}),
            ollama,
        ),
        (
            Method::POST,
            "/api/chat",
            json!({"model": "gpt-4o", "messages": []}),
            ollama,
        ),
        (
            Method::POST,
            "/api/embed",
            json!({"model": "gpt-4o", "keep_alive": 0}),
            ollama,
        ),
    ] {
        let (status, reply) = call(&server, method, path, body).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {reply}");
        let told = reply.pointer(place).and_then(Value::as_str);
        let told = told.unwrap_or_else(|| panic!("{path}: {reply}"));
        assert!(
            ["model_not_found", "not_found_error"].contains(&told) || told.contains("not found"),
            "{path}: {reply}"
        );
    }
    let (status, _) = call(&server, Method::GET, "/v1/models/small", Value::Null).await;
    assert_eq!(status, StatusCode::OK);
}
