//! Compressed bodies: read on every route, measured when they are plain, refused in words.

use std::io;

use async_compression::tokio::write::{
    BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder,
};
use axum::{Router, body::Bytes, routing::post};
use macmlx_inference::ScriptedBackend;
use macmlx_server::Options;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::support::{Served, chat, says, start, start_with_control};

async fn written(encoding: &str, plain: &[u8]) -> io::Result<Vec<u8>> {
    macro_rules! by {
        ($encoder:ident) => {{
            let mut encoder = $encoder::new(Vec::new());
            encoder.write_all(plain).await?;
            encoder.shutdown().await?;
            Ok(encoder.into_inner())
        }};
    }
    match encoding {
        "gzip" | "x-gzip" => by!(GzipEncoder),
        "deflate" => by!(ZlibEncoder),
        "bare deflate" => by!(DeflateEncoder),
        "br" => by!(BrotliEncoder),
        "zstd" => by!(ZstdEncoder),
        _ => Ok(plain.to_vec()),
    }
}

/// A text as it is after these encodings, one after the other.
async fn compressed(encodings: &[&str], plain: &[u8]) -> Vec<u8> {
    let mut body = plain.to_vec();
    for encoding in encodings {
        body = written(encoding, &body).await.unwrap();
    }
    body
}

async fn send(server: &Served, path: &str, encoding: &str, body: Vec<u8>) -> Response {
    Client::new()
        .post(server.at(path))
        .header("content-encoding", encoding)
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn every_encoding_is_read_in_any_spelling_and_several_in_a_row() {
    let cases: &[(&str, &[&str])] = &[
        ("gzip", &["gzip"]),
        ("X-GZip", &["gzip"]),
        ("deflate", &["deflate"]),
        ("deflate", &["bare deflate"]),
        ("br", &["br"]),
        ("ZSTD", &["zstd"]),
        ("identity", &[]),
        ("", &[]),
        ("identity, gzip", &["gzip"]),
        ("gzip, br", &["gzip", "br"]),
        ("zstd,deflate,gzip", &["zstd", "deflate", "gzip"]),
        ("br, br, br, br", &["br", "br", "br", "br"]),
    ];
    let mut backend = ScriptedBackend::default();
    for _ in cases {
        backend = backend.then_events(says(&["a"]));
    }
    let server = start(backend, Options::default()).await;
    for (header, encodings) in cases {
        let body = compressed(encodings, chat(false).to_string().as_bytes()).await;
        let response = send(&server, "/v1/chat/completions", header, body).await;
        assert_eq!(response.status(), 200, "{header}");
    }
}

#[tokio::test]
async fn every_route_with_a_body_reads_compressed_ones() {
    let control = Router::new().route("/x/echo", post(async |body: Bytes| body));
    let server = start_with_control(control, Options::default()).await;
    // Each of these is told what is wrong with a field, so the body was read.
    for path in [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/embeddings",
        "/v1/rerank",
        "/v1/tokenize",
        "/v1/messages",
        "/anthropic/v1/messages",
        "/v1/messages/count_tokens",
        "/api/chat",
        "/api/generate",
        "/api/embed",
        "/api/show",
    ] {
        let body = compressed(&["zstd"], br#"{"model": 5}"#).await;
        let response = send(&server, path, "zstd", body).await;
        assert_eq!(response.status(), 400, "{path}");
        let text = response.text().await.unwrap();
        assert!(text.contains("model"), "{path}: {text}");
    }
    let body = compressed(&["gzip"], b"{\"a\": 1}").await;
    let response = send(&server, "/x/echo", "gzip", body).await;
    assert_eq!(response.text().await.unwrap(), "{\"a\": 1}");
}

#[tokio::test]
async fn two_gzip_members_are_one_body() {
    let server = start(
        ScriptedBackend::default().then_events(says(&["a"])),
        Options::default(),
    )
    .await;
    let text = chat(false).to_string();
    let (head, tail) = text.as_bytes().split_at(text.len() / 2);
    let mut body = compressed(&["gzip"], head).await;
    body.extend(compressed(&["gzip"], tail).await);
    let response = send(&server, "/v1/chat/completions", "gzip", body).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn what_grows_over_the_limit_is_413() {
    let options = Options {
        body_limit_bytes: 10_000,
        ..Options::default()
    };
    let control = Router::new().route("/x/echo", post(async |body: Bytes| body));
    let server = start_with_control(control, options).await;
    let zeros = vec![0; 5_000_000];
    for encodings in [
        &["gzip"][..],
        &["deflate"],
        &["br"],
        &["zstd"],
        // Too large in between: the outer step gives more than the limit.
        &["gzip", "zstd"],
        &["zstd", "zstd", "zstd"],
    ] {
        let body = compressed(encodings, &zeros).await;
        assert!(body.len() < 10_000, "{encodings:?}");
        let header = encodings.join(", ");
        let response = send(&server, "/v1/chat/completions", &header, body.clone()).await;
        assert_eq!(response.status(), 413, "{encodings:?}");
        let error: Value = response.json().await.unwrap();
        assert_eq!(error["error"]["code"], "request_too_large");
        if encodings.len() == 1 {
            let response = send(&server, "/x/echo", &header, body).await;
            assert_eq!(response.status(), 413, "{encodings:?}");
        }
    }
}

#[tokio::test]
async fn a_broken_body_is_400_that_names_the_encoding() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let whole = compressed(&[encoding], chat(false).to_string().as_bytes()).await;
        let cut = whole[..whole.len() / 2].to_vec();
        let mut garbage = whole.clone();
        for byte in &mut garbage[1..] {
            *byte ^= 0xa5;
        }
        for body in [cut, garbage, b"{\"model\": \"small\"}".to_vec()] {
            let response = send(&server, "/v1/chat/completions", encoding, body).await;
            assert_eq!(response.status(), 400, "{encoding}");
            let error: Value = response.json().await.unwrap();
            let message = error["error"]["message"].as_str().unwrap();
            assert!(
                message.starts_with(&format!("the request body is not valid {encoding}:")),
                "{message}"
            );
        }
    }
    let five = "br, br, br, br, br";
    let response = send(&server, "/v1/chat/completions", five, b"x".to_vec()).await;
    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn other_encodings_are_415_in_each_dialects_shape() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for (path, pointer) in [
        ("/v1/chat/completions", "/error/message"),
        ("/v1/messages", "/error/message"),
        ("/api/chat", "/error"),
        ("/v1/nowhere", "/error/message"),
    ] {
        for encoding in ["lz4", "gzip, compress", "zstd;q=1"] {
            let response = send(&server, path, encoding, b"{}".to_vec()).await;
            assert_eq!(response.status(), 415, "{path} {encoding}");
            assert_eq!(
                response.headers()["accept-encoding"],
                "gzip, deflate, br, zstd"
            );
            let error: Value = response.json().await.unwrap();
            let message = error.pointer(pointer).unwrap().as_str().unwrap();
            let wrong = encoding.rsplit(", ").next().unwrap();
            assert!(message.contains(&format!("`{wrong}`")), "{message}");
            assert!(message.contains("gzip, deflate, br, zstd"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_header_without_a_body_says_nothing() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for encoding in ["gzip", "lz4"] {
        let response = Client::new()
            .get(server.at("/v1/models"))
            .header("content-encoding", encoding)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200, "{encoding}");
    }
    let response = send(&server, "/v1/chat/completions", "gzip", Vec::new()).await;
    let error: Value = response.json().await.unwrap();
    assert_eq!(error["error"]["param"], json!("model"));
}
