//! Every route, and what is no route.

use std::{sync::Arc, time::Duration};

use macmlx_inference::{Backend, InferenceError, Prompt, ScriptedBackend};
use macmlx_server::Options;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::support::{chat, says, start, start_shared};

#[tokio::test]
async fn a_chat_completion_is_answered_with_and_without_v1() {
    let backend = ScriptedBackend::default()
        .then_events(says(&["Pa", "ris."]))
        .then_events(says(&["Rome."]));
    let server = start(backend, Options::default()).await;
    for (path, answer) in [
        ("/v1/chat/completions", "Paris."),
        ("/chat/completions", "Rome."),
    ] {
        let response = Client::new()
            .post(server.at(path))
            .json(&chat(false))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["x-request-id"].to_str().unwrap();
        assert!(id.starts_with("req_"), "{id}");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["choices"][0]["message"]["content"], answer);
        assert_eq!(body["model"], "org/small");
        assert_eq!(body["usage"]["total_tokens"], 5);
    }
}

#[tokio::test]
async fn a_path_that_a_client_doubled_is_understood() {
    let paths = [
        "/v1/chat/completions/chat/completions",
        "/chat/completions/chat/completions",
        "/v1/v1/chat/completions",
    ];
    let backend = paths.iter().fold(ScriptedBackend::default(), |backend, _| {
        backend.then_events(says(&["a"]))
    });
    let server = start(backend, Options::default()).await;
    for path in paths {
        let (status, body) = post(&server.at(path), &chat(false)).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert_eq!(body["object"], "chat.completion");
    }
}

#[tokio::test]
async fn several_prompts_are_asked_at_once_and_answered_together() {
    let backend = Arc::new(
        ScriptedBackend::default()
            .then_events(says(&["one"]))
            .then_events(says(&["two"])),
    );
    let server = start_shared(
        Arc::clone(&backend) as Arc<dyn Backend>,
        Options::default(),
        Duration::ZERO,
    )
    .await;
    let body: Value = Client::new()
        .post(server.at("/v1/completions"))
        .json(&json!({"model": "small", "prompt": ["a", "b"]}))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(body["object"], "text_completion");
    assert_eq!(body["choices"][0]["text"], "one");
    assert_eq!(body["choices"][1]["text"], "two");
    assert_eq!(body["usage"]["prompt_tokens"], 6);
    let prompts: Vec<_> = backend
        .requests()
        .into_iter()
        .map(|request| request.prompt)
        .collect();
    assert_eq!(
        prompts,
        [Prompt::Text("a".into()), Prompt::Text("b".into())]
    );
}

#[tokio::test]
async fn models_are_listed_and_found_by_their_whole_id() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let list: Value = get(&server.at("/v1/models")).await.1;
    let ids: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["org/small", "flat"]);
    for path in [
        "/v1/models/org/small",
        "/v1/models/org%2Fsmall",
        "/models/org/small",
    ] {
        let (status, model) = get(&server.at(path)).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert_eq!(model["id"], "org/small");
        assert_eq!(model["context_length"], 2048);
    }
    let (status, error) = get(&server.at("/v1/models/org/none")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(error["error"]["code"], "model_not_found");
}

#[tokio::test]
async fn editors_learn_which_models_call_tools() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let (status, list) = get(&server.at("/api/v0/models")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(list["data"][0]["id"], "org/small");
    assert_eq!(list["data"][0]["type"], "llm");
    assert_eq!(list["data"][0]["state"], "not-loaded");
    assert_eq!(list["data"][0]["max_context_length"], 2048);
    assert_eq!(list["data"][0]["capabilities"], json!(["tool_use"]));
    let (_, one) = get(&server.at("/api/v0/models/org/small")).await;
    assert_eq!(one, list["data"][0]);
    let (status, error) = get(&server.at("/api/v0/models/gone")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(error["error"]["code"], "model_not_found");
}

#[tokio::test]
async fn text_becomes_tokens_and_text_again() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for prefix in ["", "/v1"] {
        let tokens = post(
            &server.at(&format!("{prefix}/tokenize")),
            &json!({"model": "flat", "prompt": "ab"}),
        )
        .await
        .1;
        assert_eq!(
            tokens,
            json!({"tokens": [97, 98], "count": 2, "max_model_len": 2048})
        );
        let text = post(
            &server.at(&format!("{prefix}/detokenize")),
            &json!({"model": "flat", "tokens": [97, 98]}),
        )
        .await
        .1;
        assert_eq!(text, json!({"prompt": "ab"}));
    }
    let conversation = json!({"model": "flat", "messages": [{"role": "user", "content": "a"}]});
    let tokens = post(&server.at("/v1/tokenize"), &conversation).await.1;
    assert_eq!(tokens["count"], 1);
    // As llama.cpp's clients ask: without a model.
    let nameless = json!({"messages": [{"role": "user", "content": "abc"}]});
    let (status, prompt) = post(&server.at("/apply-template"), &nameless).await;
    assert_eq!((status, prompt), (StatusCode::OK, json!({"prompt": "abc"})));
    let (status, refused) = post(&server.at("/apply-template"), &json!({})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(refused["error"]["param"], "messages");
    // Counted as the model would that answers to such a name.
    let unknown = json!({"model": "gone", "prompt": "a"});
    let (status, _) = post(&server.at("/v1/tokenize"), &unknown).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn the_server_says_that_it_is_there() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for path in ["/health", "/v1/health"] {
        assert_eq!(get(&server.at(path)).await.1, json!({"status": "ok"}));
    }
    for path in ["/v1", "/v1/", "//v1"] {
        assert_eq!(get(&server.at(path)).await.1["name"], "macMLX");
    }
    let head = Client::new().head(server.at("/v1")).send().await.unwrap();
    assert_eq!(head.status(), StatusCode::OK);
}

#[tokio::test]
async fn what_is_no_route_is_404_in_json() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for path in ["/v1/nothing", "/v1/files", "/chat", "/v1/nothing/"] {
        let (status, body) = get(&server.at(path)).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(body["error"]["code"], "unknown_url");
        assert_eq!(body["error"]["type"], "invalid_request_error");
    }
}

#[tokio::test]
async fn a_wrong_method_is_405_in_json() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let response = Client::new()
        .get(server.at("/v1/chat/completions"))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.headers()["allow"], "POST");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], "method_not_supported");
    let deleted = Client::new()
        .delete(server.at("/v1/models"))
        .send()
        .await
        .unwrap();
    assert_eq!(deleted.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert!(deleted.json::<Value>().await.unwrap()["error"].is_object());
}

#[tokio::test]
async fn what_the_backend_refuses_has_its_status() {
    let cases = [
        (
            InferenceError::ModelNotFound {
                reference: "x".into(),
                suggestions: Vec::new(),
            },
            404,
        ),
        (
            InferenceError::Template {
                message: "no".into(),
            },
            400,
        ),
        (
            InferenceError::ContextLength {
                prompt_tokens: 9,
                limit: 8,
            },
            400,
        ),
        (InferenceError::Overloaded, 503),
        (
            InferenceError::Engine {
                message: "x".into(),
            },
            500,
        ),
    ];
    for (error, status) in cases {
        for stream in [false, true] {
            let backend = ScriptedBackend::default().then_error(error.clone());
            let server = start(backend, Options::default()).await;
            let response = Client::new()
                .post(server.at("/v1/chat/completions"))
                .json(&chat(stream))
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), status, "{error:?}");
            assert_eq!(
                response.headers().contains_key("retry-after"),
                error == InferenceError::Overloaded
            );
            assert_eq!(response.headers()["content-type"], "application/json");
            let body: Value = response.json().await.unwrap();
            assert!(body["error"]["message"].is_string());
        }
    }
}

async fn get(url: &str) -> (StatusCode, Value) {
    let response = Client::new().get(url).send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

async fn post(url: &str, body: &Value) -> (StatusCode, Value) {
    let response = Client::new().post(url).json(body).send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}
