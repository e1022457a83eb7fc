//! Streams: frames, signs of life, failures and readers who leave.

use std::time::Duration;

use macmlx_inference::{GenerationEvent, InferenceError, ScriptedBackend};
use macmlx_server::Options;
use macmlx_test_support::sse::{Reader, Record};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::support::{chat, completed, finished, led, says, start, started, text};

fn impatient() -> Options {
    Options {
        keep_alive: Duration::from_millis(50),
        ..Options::default()
    }
}

async fn ask(url: String, stream: bool) -> reqwest::Response {
    Client::new()
        .post(url)
        .json(&chat(stream))
        .send()
        .await
        .unwrap()
}

fn data(record: &Record) -> Value {
    serde_json::from_str(record.data().unwrap()).unwrap()
}

async fn next_event(reader: &mut Reader) -> Value {
    loop {
        match reader.next().await.unwrap() {
            Record::Comment(_) => {}
            event @ Record::Event { .. } => return data(&event),
        }
    }
}

#[tokio::test]
async fn a_stream_is_events_and_ends_with_done() {
    let backend = ScriptedBackend::default().then_events(says(&["Pa", "ris."]));
    let server = start(backend, Options::default()).await;
    let response = ask(server.at("/v1/chat/completions"), true).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-cache");
    let records = Reader::new(response.bytes_stream()).rest().await;
    let (done, chunks) = records.split_last().unwrap();
    assert_eq!(done.data(), Some("[DONE]"));
    let joined: String = chunks
        .iter()
        .filter_map(|record| {
            let content = &data(record)["choices"][0]["delta"]["content"];
            content.as_str().map(str::to_owned)
        })
        .collect();
    assert_eq!(joined, "Paris.");
}

#[tokio::test]
async fn frames_are_sent_as_they_come() {
    let (backend, mut hand) = led();
    let server = start(backend, Options::default()).await;
    hand.admit();
    hand.say(started());
    let response = ask(server.at("/v1/chat/completions"), true).await;
    let mut reader = Reader::new(response.bytes_stream());
    let role = next_event(&mut reader).await;
    assert_eq!(role["choices"][0]["delta"]["role"], "assistant");
    for word in ["one", "two"] {
        hand.say(text(word));
        let frame = next_event(&mut reader).await;
        assert_eq!(frame["choices"][0]["delta"]["content"], word);
    }
    hand.say(finished());
    hand.say(completed());
    drop(hand.events);
    assert_eq!(reader.rest().await.len(), 2);
}

#[tokio::test]
async fn silence_is_filled_with_signs_of_life_also_during_prefill() {
    let (backend, mut hand) = led();
    let server = start(backend, impatient()).await;
    hand.admit();
    hand.say(started());
    let response = ask(server.at("/v1/chat/completions"), true).await;
    let mut reader = Reader::new(response.bytes_stream());
    next_event(&mut reader).await;
    for processed in 1..=3 {
        hand.say(GenerationEvent::Prefill {
            processed,
            total: 3,
        });
        let sign = reader.next().await.unwrap();
        let sign = data(&sign);
        assert_eq!(sign["object"], "chat.completion.chunk");
        assert_eq!(
            sign["choices"],
            json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": null}])
        );
    }
    hand.say(text("now"));
    assert_eq!(
        next_event(&mut reader).await["choices"][0]["delta"]["content"],
        "now"
    );
}

#[tokio::test]
async fn a_model_that_loads_slowly_does_not_hold_back_the_head() {
    let (backend, mut hand) = led();
    let server = start(backend, impatient()).await;
    let response = ask(server.at("/v1/chat/completions"), true).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut reader = Reader::new(response.bytes_stream());
    assert_eq!(
        reader.next().await,
        Some(Record::Comment("keep-alive".into()))
    );
    hand.admit();
    hand.say(started());
    hand.say(text("at last"));
    next_event(&mut reader).await;
    let frame = next_event(&mut reader).await;
    assert_eq!(frame["choices"][0]["delta"]["content"], "at last");
}

fn loading() -> GenerationEvent {
    GenerationEvent::Loading {
        model: "org/small".into(),
    }
}

#[tokio::test]
async fn a_model_that_does_not_load_is_told_by_a_status_where_loading_has_no_frames() {
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let chat = json!({"messages": messages, "max_tokens": 5});
    let completion = json!({"prompt": "Hi"});
    for (path, body) in [
        ("/v1/chat/completions", chat.clone()),
        ("/v1/completions", completion.clone()),
        ("/v1/responses", json!({"input": "Hi"})),
        ("/v1/messages", chat.clone()),
        ("/infill", json!({"input_prefix": "a", "input_suffix": "b"})),
        ("/api/chat", chat.clone()),
        ("/api/generate", completion.clone()),
        ("/api/v0/chat/completions", chat),
        ("/api/v0/completions", completion),
    ] {
        let backend = ScriptedBackend::default().then_events(vec![
            Ok(loading()),
            Err(InferenceError::ModelLoad {
                model: "org/small".into(),
                reason: "its weights are damaged".into(),
            }),
        ]);
        let server = start(backend, Options::default()).await;
        let mut body = body.clone();
        body["model"] = json!("small");
        body["stream"] = json!(true);
        let request = Client::new().post(server.at(path)).json(&body);
        let response = request.send().await.unwrap();
        assert!(response.status().is_server_error(), "{path}");
        let told = response.text().await.unwrap();
        assert!(told.contains("its weights are damaged"), "{path}: {told}");
    }
}

#[tokio::test]
async fn lm_studios_clients_hear_of_loading_while_it_goes_on() {
    let (backend, mut hand) = led();
    let server = start(backend, Options::default()).await;
    hand.admit();
    hand.say(loading());
    let body = json!({"model": "small", "input": "Hi", "stream": true});
    let request = Client::new().post(server.at("/api/v1/chat")).json(&body);
    let mut reader = Reader::new(request.send().await.unwrap().bytes_stream());
    let mut types = Vec::new();
    for _ in 0..3 {
        let event = next_event(&mut reader).await;
        assert_eq!(event["model_instance_id"], "org/small");
        types.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        types,
        ["chat.start", "model_load.start", "model_load.progress"]
    );
    hand.say(GenerationEvent::Loaded {
        elapsed: Duration::from_millis(2500),
    });
    let progress = next_event(&mut reader).await;
    assert_eq!(progress["progress"], 1.0);
    let end = next_event(&mut reader).await;
    assert_eq!(
        (&end["type"], &end["load_time_seconds"]),
        (&json!("model_load.end"), &json!(2.5))
    );
    hand.say(started());
    let next = next_event(&mut reader).await;
    assert_eq!(next["type"], "prompt_processing.start");
}

#[tokio::test]
async fn loading_that_takes_long_does_not_hold_back_the_head() {
    let (backend, mut hand) = led();
    let server = start(backend, impatient()).await;
    hand.admit();
    hand.say(loading());
    let response = ask(server.at("/v1/chat/completions"), true).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut reader = Reader::new(response.bytes_stream());
    let sign = reader.next().await;
    assert_eq!(sign, Some(Record::Comment("keep-alive".into())));
    hand.say(GenerationEvent::Loaded {
        elapsed: Duration::from_secs(9),
    });
    hand.say(started());
    let role = next_event(&mut reader).await;
    assert_eq!(role["choices"][0]["delta"]["role"], "assistant");
}

#[tokio::test]
async fn a_refusal_after_the_head_is_a_frame() {
    let (backend, mut hand) = led();
    let server = start(backend, impatient()).await;
    let response = ask(server.at("/v1/chat/completions"), true).await;
    let mut reader = Reader::new(response.bytes_stream());
    let refusal = InferenceError::ContextLength {
        prompt_tokens: 9,
        limit: 8,
    };
    hand.admit.take().unwrap().send(Err(refusal)).unwrap();
    let error = next_event(&mut reader).await;
    assert_eq!(error["error"]["code"], "context_length_exceeded");
    assert_eq!(reader.next().await, None);
}

#[tokio::test]
async fn a_failure_is_the_last_frame() {
    let failure = InferenceError::Engine {
        message: "lost".into(),
    };
    let failed = vec![Ok(started()), Ok(text("a")), Err(failure)];
    let broken_off = vec![Ok(started()), Ok(text("a"))];
    for events in [failed, broken_off] {
        let backend = ScriptedBackend::default()
            .then_events(events.clone())
            .then_events(events);
        let server = start(backend, Options::default()).await;
        let response = ask(server.at("/v1/chat/completions"), true).await;
        let records = Reader::new(response.bytes_stream()).rest().await;
        assert_eq!(records.len(), 3);
        assert_eq!(data(&records[2])["error"]["code"], "engine_error");
        let whole = ask(server.at("/v1/chat/completions"), false).await;
        assert_eq!(whole.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}

#[tokio::test]
async fn a_reader_who_leaves_cancels_the_stream() {
    let (backend, mut hand) = led();
    let server = start(backend, Options::default()).await;
    hand.admit();
    hand.say(started());
    let response = ask(server.at("/v1/chat/completions"), true).await;
    drop(response);
    hand.dropped().await;
}

#[tokio::test]
async fn a_client_who_leaves_cancels_what_is_not_streamed() {
    for is_admitted in [false, true] {
        let (backend, mut hand) = led();
        let server = start(backend, Options::default()).await;
        if is_admitted {
            hand.admit();
            hand.say(started());
        }
        let url = server.at("/v1/chat/completions");
        let client = tokio::spawn(async move { ask(url, false).await });
        hand.asked().await;
        client.abort();
        hand.dropped().await;
    }
}
