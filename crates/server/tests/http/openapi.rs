//! The document of all routes.

use std::collections::BTreeSet;

use macmlx_inference::ScriptedBackend;
use macmlx_server::Options;
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;

use crate::support::{Served, start};

async fn document(server: &Served) -> Value {
    let response = reqwest::get(server.at("/openapi.json")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

/// Every value of a key, at any depth.
fn values_of<'a>(value: &'a Value, key: &str, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == key {
                    found.extend(value.as_str());
                }
                values_of(value, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| values_of(item, key, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_reference_is_resolved() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let document = document(&server).await;
    let mut references = BTreeSet::new();
    values_of(&document, "$ref", &mut references);
    assert!(references.len() > 50, "{references:?}");
    for reference in references {
        let pointer = reference.trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn every_dialect_is_told_of() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let document = document(&server).await;
    for path in [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/infill",
        "/v1/embeddings",
        "/v1/rerank",
        "/v1/responses",
        "/v1/responses/{id}/input_items",
        "/v1/messages",
        "/anthropic/v1/messages/count_tokens",
        "/v1/models/{id}",
        "/api/chat",
        "/api/generate",
        "/api/embed",
        "/api/pull",
        "/v1/health",
    ] {
        assert!(document["paths"].get(path).is_some(), "{path}");
    }
}

#[tokio::test]
async fn what_is_told_of_is_there() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let document = document(&server).await;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let path = path.replace("{id}", "org%2Fsmall").replace("{item}", "x");
            let response = Client::new()
                .request(method.clone(), server.at(&path))
                .send()
                .await
                .unwrap();
            assert_ne!(
                response.status(),
                StatusCode::METHOD_NOT_ALLOWED,
                "{method} {path}"
            );
            let body = response.text().await.unwrap();
            assert!(
                !body.contains("there is no route"),
                "{method} {path}: {body}"
            );
        }
    }
}
