//! Every control route and what is wrong with a request, in words that a program's user knows.

use std::{collections::BTreeSet, fs};

use axum::http::StatusCode;
use macmlx_host::Owner;
use serde_json::{Value, json};

use crate::{security::filled, support::Running};

/// Names of our code and words of the crates that read for it.
const WORDS_OF_CODE: [&str; 20] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "usize",
    "i64",
    "f32",
    "f64",
    "bool",
    "str",
    "struct",
    "enum",
    "tuple",
    "Option",
    "Vec",
    "untagged",
    "variant",
    "serde",
    "axum",
    "deserialize",
];

const SENTENCES_OF_CODE: [&str; 9] = [
    "invalid type",
    "invalid value",
    "invalid length",
    "missing field",
    "unknown field",
    "invalid digit",
    "did not match any",
    "a sequence",
    "a map",
];

/// The shape and the words of a refusal.
fn check(status: StatusCode, body: &Value, context: &str) {
    let context = format!("{context} {status}: {body}");
    assert!(body["error"]["code"].is_string(), "{context}");
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert!(!message.is_empty(), "{context}");
    for word in message.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
        assert!(!WORDS_OF_CODE.contains(&word), "{context}");
    }
    for sentence in SENTENCES_OF_CODE {
        assert!(!message.to_lowercase().contains(sentence), "{context}");
    }
}

/// An application whose hub does not answer.
async fn running() -> Running {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("data");
    fs::create_dir_all(&home).unwrap();
    let settings = json!({"hfEndpoint": "http://127.0.0.1:1"});
    fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    let app = Running::start_in(folder.path(), Owner::Gui).await.unwrap();
    Running { folder, app }
}

fn collect_fields(document: &Value, schema: &Value, fields: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap();
        collect_fields(document, target, fields);
    }
    for parts in ["allOf", "oneOf", "anyOf"] {
        for part in schema[parts].as_array().into_iter().flatten() {
            collect_fields(document, part, fields);
        }
    }
    let properties = schema["properties"].as_object();
    fields.extend(
        properties
            .into_iter()
            .flat_map(|fields| fields.keys().cloned()),
    );
}

#[tokio::test]
async fn every_refusal_of_a_body_or_a_query_is_in_words_of_json() {
    let running = running().await;
    let (_, document) = running.call("GET", "/x/openapi.json", "").await;
    let wrong = [
        json!(true),
        json!(-7),
        json!(0.5),
        json!("\u{1}"),
        json!([]),
        json!([{"a": 1}]),
        json!({}),
        json!({"a": {}}),
    ];
    let mut refused = 0;
    for (told, methods) in document["paths"].as_object().unwrap() {
        // It ends the server.
        if told == "/x/shutdown" {
            continue;
        }
        let path = filled(told);
        for (method, operation) in methods.as_object().unwrap() {
            let method = method.to_uppercase();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                // Any text is one, and asks the hub.
                let is_text = parameter["schema"]["type"].to_string().contains("string")
                    && parameter["schema"]["enum"].is_null();
                if parameter["in"] != "query" || is_text {
                    continue;
                }
                for value in ["x", "-1", "0.5", "1e99", "%ff", "[]", "true"] {
                    let path = format!("{path}?{name}={value}");
                    let (status, body) = running.call(&method, &path, "").await;
                    if !status.is_success() {
                        check(status, &body, &format!("{method} {path}"));
                        refused += u32::from(status == StatusCode::BAD_REQUEST);
                    }
                }
            }
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if schema.is_null() {
                continue;
            }
            let mut fields = BTreeSet::new();
            collect_fields(&document, schema, &mut fields);
            let bodies = fields
                .iter()
                .flat_map(|field| wrong.iter().map(move |value| json!({field: value})));
            let bodies = bodies.map(|body| body.to_string());
            let whole = ["{\"a\": ", "[]", "\"x\"", "7", "{\"a\": NaN}", "{'a': 1}"];
            for body in bodies.chain(whole.map(str::to_owned)) {
                let (status, answer) = running.call(&method, &path, &body).await;
                if !status.is_success() {
                    check(status, &answer, &format!("{method} {path} {body}"));
                    refused += u32::from(status == StatusCode::BAD_REQUEST);
                }
            }
        }
    }
    assert!(refused > 200, "{refused}");
}

#[tokio::test]
async fn what_is_no_control_route_is_told_in_its_shape_and_as_it_was_called() {
    let running = running().await;
    for (method, path, status) in [
        ("GET", "/x/nope", StatusCode::NOT_FOUND),
        ("GET", "//x//nope/", StatusCode::NOT_FOUND),
        ("PUT", "/x/settings", StatusCode::METHOD_NOT_ALLOWED),
        ("PUT", "//x/settings/", StatusCode::METHOD_NOT_ALLOWED),
        ("GET", "/x/models/%ff", StatusCode::BAD_REQUEST),
    ] {
        let (answered, body) = running.call(method, path, "").await;
        check(answered, &body, path);
        assert_eq!(answered, status, "{path}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(path), "{path}: {message}");
    }
}

#[tokio::test]
async fn numbers_of_a_query_are_read_as_clients_write_them() {
    let running = running().await;
    for (query, status) in [
        ("limit=10", StatusCode::OK),
        ("limit=10.0", StatusCode::OK),
        ("limit=1e1", StatusCode::OK),
        ("limit=", StatusCode::OK),
        ("limit=-1", StatusCode::BAD_REQUEST),
        ("limit=ten", StatusCode::BAD_REQUEST),
    ] {
        let (answered, body) = running.call("GET", &format!("/x/logs?{query}"), "").await;
        assert_eq!(answered, status, "{query}: {body}");
        if status != StatusCode::OK {
            assert_eq!(body["error"]["param"], "limit");
        }
    }
}
