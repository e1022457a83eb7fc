//! Bodies that are wrong, large or oddly labelled.

use macmlx_inference::ScriptedBackend;
use macmlx_server::Options;
use reqwest::{Body, Client, StatusCode};
use serde_json::{Value, json};

use crate::support::{chat, led, says, start};

#[tokio::test]
async fn malformed_bodies_are_400_in_json() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for (body, param) in [
        ("{", json!(null)),
        ("[]", json!(null)),
        ("", json!("model")),
        ("{\"model\": 5}", json!("model")),
        ("{\"model\": \"m\", \"messages\": {}}", json!("messages")),
    ] {
        for path in ["/v1/chat/completions", "/v1/completions", "/v1/tokenize"] {
            let response = Client::new()
                .post(server.at(path))
                .header("content-type", "application/json")
                .body(body)
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path} {body}");
            let error: Value = response.json().await.unwrap();
            assert_eq!(error["error"]["type"], "invalid_request_error");
            if path == "/v1/chat/completions" {
                assert_eq!(error["error"]["param"], param, "{body}");
            }
        }
    }
}

#[tokio::test]
async fn the_content_type_does_not_matter() {
    let backend = ScriptedBackend::default()
        .then_events(says(&["a"]))
        .then_events(says(&["a"]));
    let server = start(backend, Options::default()).await;
    for content_type in [None, Some("text/plain")] {
        let mut request = Client::new()
            .post(server.at("/v1/chat/completions"))
            .body(chat(false).to_string());
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn large_bodies_are_413_whether_announced_or_not() {
    let options = Options {
        body_limit_bytes: 1000,
        ..Options::default()
    };
    let backend = ScriptedBackend::default().then_events(says(&["a"]));
    let server = start(backend, options).await;
    let mut request = chat(false);
    request["messages"][0]["content"] = "x".repeat(2000).into();
    let text = request.to_string();
    let chunks: Vec<_> = text
        .as_bytes()
        .chunks(300)
        .map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()))
        .collect();
    let announced = Body::from(text);
    let unannounced = Body::wrap_stream(futures::stream::iter(chunks));
    for body in [announced, unannounced] {
        let response = Client::new()
            .post(server.at("/v1/chat/completions"))
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let error: Value = response.json().await.unwrap();
        assert_eq!(error["error"]["code"], "request_too_large");
    }
    let small = Client::new()
        .post(server.at("/v1/chat/completions"))
        .json(&chat(false))
        .send()
        .await
        .unwrap();
    assert_eq!(small.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_panic_is_500_in_json() {
    let (backend, _hand) = led();
    let server = start(backend, Options::default()).await;
    let response = Client::new()
        .post(server.at("/v1/tokenize"))
        .json(&json!({"model": "flat", "prompt": "a"}))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let error: Value = response.json().await.unwrap();
    assert_eq!(error["error"]["code"], "internal_error");
}
