//! Closing the door without cutting anyone off.

use std::{sync::Arc, time::Duration};

use axum::{body::Body, http::Request};
use macmlx_inference::{ScriptedCatalog, ScriptedModelFiles};
use macmlx_server::{InProcess, Options, router};
use macmlx_test_support::sse::Reader;
use reqwest::{Client, StatusCode};
use serde_json::Value;

use crate::support::{card, chat, completed, finished, led, start_shared, started, text};

const LONG: Duration = Duration::from_mins(1);

#[tokio::test]
async fn an_answer_may_finish_within_the_grace() {
    let (backend, mut hand) = led();
    let mut server = start_shared(Arc::new(backend), Options::default(), LONG).await;
    hand.admit();
    hand.say(started());
    let response = Client::new()
        .post(server.at("/v1/chat/completions"))
        .json(&chat(true))
        .send()
        .await
        .unwrap();
    server.begin_shutdown();
    hand.say(text("done"));
    hand.say(finished());
    hand.say(completed());
    drop(hand.events);
    let records = Reader::new(response.bytes_stream()).rest().await;
    assert_eq!(records.last().unwrap().data(), Some("[DONE]"));
    server.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn after_the_grace_a_stream_ends_with_a_frame() {
    let (backend, mut hand) = led();
    let mut server = start_shared(Arc::new(backend), Options::default(), Duration::ZERO).await;
    hand.admit();
    hand.say(started());
    let response = Client::new()
        .post(server.at("/v1/chat/completions"))
        .json(&chat(true))
        .send()
        .await
        .unwrap();
    server.begin_shutdown();
    let records = Reader::new(response.bytes_stream()).rest().await;
    let last: Value = serde_json::from_str(records.last().unwrap().data().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "shutting_down");
    hand.dropped().await;
    server.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn after_the_grace_a_whole_answer_is_503() {
    let (backend, mut hand) = led();
    let mut server = start_shared(Arc::new(backend), Options::default(), Duration::ZERO).await;
    let url = server.at("/v1/chat/completions");
    let asked = tokio::spawn(async move {
        Client::new()
            .post(url)
            .json(&chat(false))
            .send()
            .await
            .unwrap()
    });
    hand.asked().await;
    server.begin_shutdown();
    let response = asked.await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "1");
    server.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_way_in_without_a_port_ends_streams_with_a_frame() {
    let (backend, mut hand) = led();
    let router = router(
        Arc::new(backend),
        Arc::new(ScriptedCatalog(vec![card("org/small")])),
        Arc::new(ScriptedModelFiles::default()),
        axum::Router::new(),
        Options::default(),
    );
    let window = InProcess::new(router);
    let request = Request::post("/v1/chat/completions")
        .header("content-type", "application/json")
        .body(Body::from(chat(true).to_string()))
        .unwrap();
    hand.admit();
    hand.say(started());
    let response = window.call(request).await;
    assert_eq!(response.status(), StatusCode::OK);
    window.close();
    let records = Reader::new(response.into_body().into_data_stream())
        .rest()
        .await;
    let last: Value = serde_json::from_str(records.last().unwrap().data().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "shutting_down");
    hand.dropped().await;
}
