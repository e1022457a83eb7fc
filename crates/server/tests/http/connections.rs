//! What connections may cost, and who is spared.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use macmlx_inference::ScriptedBackend;
use macmlx_server::{ConnectionLimits, Options};
use macmlx_test_support::sse::Reader;
use reqwest::Client;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Served, chat, completed, finished, led, start, start_shared, started, text};

/// A test waits as long as this for something to be closed.
const SHORT: Duration = Duration::from_millis(300);

fn limits(limits: ConnectionLimits) -> Options {
    Options {
        connections: limits,
        ..Options::default()
    }
}

fn short() -> Options {
    limits(ConnectionLimits {
        idle: SHORT,
        body: SHORT,
        ..ConnectionLimits::default()
    })
}

async fn connect(server: &Served) -> TcpStream {
    let address = server.url.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// All that comes until the server closes the connection.
async fn rest(mut connection: TcpStream) -> String {
    let mut received = Vec::new();
    // A connection that is closed with something unread is reset.
    let _ = connection.read_to_end(&mut received).await;
    String::from_utf8_lossy(&received).into_owned()
}

/// Status and body of one whole answer.
fn parts(answer: &str) -> (&str, Value) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (&head[9..12], serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn one_that_says_nothing_or_half_a_head_is_closed() {
    let server = start(ScriptedBackend::default(), short()).await;
    for beginning in [
        "",
        "G",
        "GET / HTTP/1.1\r\nHost: loc",
        // HTTP/2's preface, whole and in part.
        "PRI * HT",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut connection = connect(&server).await;
        connection.write_all(beginning.as_bytes()).await.unwrap();
        rest(connection).await;
    }
}

#[tokio::test]
async fn one_that_was_used_is_closed_when_it_is_idle() {
    let server = start(ScriptedBackend::default(), short()).await;
    let mut connection = connect(&server).await;
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    connection.write_all(request.as_bytes()).await.unwrap();
    assert!(rest(connection).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn half_a_body_is_refused_in_the_words_of_its_dialect() {
    let server = start(ScriptedBackend::default(), short()).await;
    for (path, kind) in [
        ("/v1/chat/completions", "/error/code"),
        ("/v1/messages", "/error/type"),
        ("/api/chat", "/error"),
        ("/api/v1/chat", "/error/type"),
    ] {
        let mut connection = connect(&server).await;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: 100\r\n\r\n{{\"model\":"
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        let answer = rest(connection).await;
        let (status, body) = parts(&answer);
        assert_eq!(status, "408", "{path}");
        assert!(body.pointer(kind).unwrap().is_string(), "{path}: {body}");
        assert!(
            answer.contains("the request body stopped coming"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn an_answer_may_be_silent_for_longer() {
    let (backend, mut hand) = led();
    let options = Options {
        keep_alive: Duration::from_mins(1),
        ..short()
    };
    let server = start_shared(Arc::new(backend), options, Duration::ZERO).await;
    hand.admit();
    hand.say(started());
    let response = Client::new()
        .post(server.at("/v1/chat/completions"))
        .json(&chat(true))
        .send()
        .await
        .unwrap();
    // Another connection shows that the limit has passed.
    rest(connect(&server).await).await;
    rest(connect(&server).await).await;
    hand.say(text("late"));
    hand.say(finished());
    hand.say(completed());
    drop(hand.events);
    let records = Reader::new(response.bytes_stream()).rest().await;
    assert_eq!(records.last().unwrap().data(), Some("[DONE]"));
}

#[tokio::test]
async fn one_too_many_is_told_so_and_a_later_one_is_served() {
    let options = limits(ConnectionLimits {
        count: 2,
        ..ConnectionLimits::default()
    });
    let server = start(ScriptedBackend::default(), options).await;
    let mut places = Vec::new();
    for _ in 0..2 {
        let mut connection = connect(&server).await;
        connection
            .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await
            .unwrap();
        let mut head = [0; 12];
        connection.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        places.push(connection);
    }
    for (path, kind) in [("/v1/models", "/error/code"), ("/api/tags", "/error")] {
        let mut connection = connect(&server).await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let answer = rest(connection).await;
        let (status, body) = parts(&answer);
        assert_eq!(status, "503", "{path}");
        assert!(body.pointer(kind).unwrap().is_string(), "{path}: {body}");
        assert!(answer.to_lowercase().contains("retry-after: 1"), "{answer}");
    }
    drop(places);
    // The place is free once the server has seen the connection end.
    let client = Client::builder().pool_max_idle_per_host(0).build().unwrap();
    while client
        .get(server.at("/health"))
        .send()
        .await
        .unwrap()
        .status()
        != 200
    {}
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let mut connection = connect(&server).await;
    let head = format!(
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n",
        "x".repeat(70_000)
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    assert!(rest(connection).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn clients_may_speak_http_2_at_once() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let io = TokioIo::new(connect(&server).await);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::builder()
        .uri(server.at("/v1/models"))
        .body(Body::empty())
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
}
