//! Anthropic's routes, as its clients use them.

use std::{sync::Arc, time::Duration};

use macmlx_inference::{
    Backend, FinishReason, GenerationEvent, InferenceError, Prompt, ScriptedBackend, ToolCallPart,
};
use macmlx_server::{ApiKey, Options};
use macmlx_test_support::sse::{Reader, Record};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::{completed, finished, led, says, start, start_shared, started, text};

fn ask(url: String, body: &Value) -> RequestBuilder {
    Client::new()
        .post(url)
        .header("anthropic-version", "2023-06-01")
        .json(body)
}

fn hello(stream: bool) -> Value {
    json!({
        "model": "small",
        "max_tokens": 100,
        "stream": stream,
        "messages": [{"role": "user", "content": "Hi"}],
    })
}

async fn get(url: String) -> (StatusCode, Value) {
    let response = Client::new()
        .get(url)
        .header("anthropic-version", "2026-10-21")
        .send()
        .await
        .unwrap();
    (response.status(), response.json().await.unwrap())
}

fn name_and_data(record: &Record) -> (&str, Value) {
    match record {
        Record::Event { name, data } => {
            let data: Value = serde_json::from_str(data).unwrap();
            (name.as_deref().unwrap(), data)
        }
        Record::Comment(comment) => panic!("clients do not count comments: {comment}"),
    }
}

fn check_request_id(response: &Response) {
    let headers = response.headers();
    assert_eq!(headers["request-id"], headers["x-request-id"]);
    assert!(headers["request-id"].to_str().unwrap().starts_with("req_"));
}

#[tokio::test]
async fn messages_are_answered_at_every_base_a_client_may_be_given() {
    let paths = [
        "/v1/messages",
        "/v1/messages?beta=true",
        "/messages",
        "/anthropic/v1/messages",
        "/anthropic/messages",
    ];
    let backend = paths.iter().fold(ScriptedBackend::default(), |backend, _| {
        backend.then_events(says(&["Pa", "ris."]))
    });
    let server = start(backend, Options::default()).await;
    for path in paths {
        let response = ask(server.at(path), &hello(false))
            .header(
                "anthropic-beta",
                "claude-code-20250219,unheard-of-2030-01-01",
            )
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        check_request_id(&response);
        let message: Value = response.json().await.unwrap();
        assert_eq!(message["type"], "message");
        assert_eq!(message["model"], "org/small");
        assert_eq!(
            message["content"],
            json!([{"type": "text", "text": "Paris."}])
        );
        assert_eq!(message["stop_reason"], "end_turn");
        assert_eq!(message["usage"]["input_tokens"], 3);
    }
}

#[tokio::test]
async fn a_stream_has_the_events_of_anthropics_in_their_order() {
    let call = |part| GenerationEvent::ToolCall {
        choice: 0,
        part,
        tokens: Vec::new(),
    };
    let events = vec![
        started(),
        text("Look:"),
        call(ToolCallPart::Start {
            id: "call_1".into(),
            name: "ls".into(),
        }),
        call(ToolCallPart::Arguments("{}".into())),
        call(ToolCallPart::End),
        GenerationEvent::Finished {
            choice: 0,
            reason: FinishReason::ToolCalls,
            stop_sequence: None,
        },
        completed(),
    ];
    let backend = ScriptedBackend::default().then_events(events.into_iter().map(Ok).collect());
    let server = start(backend, Options::default()).await;
    let response = ask(server.at("/v1/messages"), &hello(true))
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    check_request_id(&response);
    let records = Reader::new(response.bytes_stream()).rest().await;
    let names: Vec<_> = records
        .iter()
        .map(|record| {
            let (name, data) = name_and_data(record);
            assert_eq!(data["type"], name);
            name
        })
        .collect();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
}

#[tokio::test]
async fn the_message_begins_at_once_and_pings_fill_the_prefill() {
    let (backend, mut hand) = led();
    let options = Options {
        keep_alive: Duration::from_millis(50),
        ..Options::default()
    };
    let server = start(backend, options).await;
    hand.admit();
    hand.say(GenerationEvent::Started {
        model: "org/small".into(),
        prompt_tokens: 1000,
        cached_tokens: 900,
    });
    let response = ask(server.at("/v1/messages"), &hello(true))
        .send()
        .await
        .unwrap();
    let mut reader = Reader::new(response.bytes_stream());
    let first = reader.next().await.unwrap();
    let (name, data) = name_and_data(&first);
    assert_eq!(name, "message_start");
    let usage = &data["message"]["usage"];
    assert_eq!(usage["input_tokens"], 100);
    assert_eq!(usage["cache_read_input_tokens"], 900);
    assert_eq!(usage["cache_creation_input_tokens"], 0);
    for processed in 1..=2 {
        hand.say(GenerationEvent::Prefill {
            processed,
            total: 100,
        });
        let record = reader.next().await.unwrap();
        assert_eq!(name_and_data(&record), ("ping", json!({"type": "ping"})));
    }
    hand.say(text("now"));
    loop {
        let record = reader.next().await.unwrap();
        match name_and_data(&record) {
            ("ping" | "content_block_start", _) => {}
            ("content_block_delta", data) => {
                assert_eq!(data["delta"]["text"], "now");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    hand.say(finished());
    hand.say(completed());
}

#[tokio::test]
async fn a_failure_is_an_error_event_and_never_a_normal_end() {
    let failure = InferenceError::Engine {
        message: "lost".into(),
    };
    let backend =
        ScriptedBackend::default().then_events(vec![Ok(started()), Ok(text("a")), Err(failure)]);
    let server = start(backend, Options::default()).await;
    let response = ask(server.at("/v1/messages"), &hello(true))
        .send()
        .await
        .unwrap();
    let records = Reader::new(response.bytes_stream()).rest().await;
    let (name, data) = name_and_data(records.last().unwrap());
    assert_eq!(name, "error");
    assert_eq!(data["error"]["type"], "api_error");
    assert!(
        !records
            .iter()
            .any(|record| name_and_data(record).0 == "message_stop")
    );
}

#[tokio::test]
async fn refusals_are_in_anthropics_shape() {
    let context = InferenceError::ContextLength {
        prompt_tokens: 40_000,
        limit: 32_768,
    };
    let unknown = InferenceError::ModelNotFound {
        reference: "claude-opus-5-5".into(),
        suggestions: Vec::new(),
    };
    for (error, status, kind, words) in [
        (
            context,
            400,
            "invalid_request_error",
            "prompt is too long: 40000 tokens > 32768 maximum",
        ),
        (unknown, 404, "not_found_error", "claude-opus-5-5"),
        (InferenceError::Overloaded, 529, "overloaded_error", "busy"),
    ] {
        for stream in [false, true] {
            let backend = ScriptedBackend::default().then_error(error.clone());
            let server = start(backend, Options::default()).await;
            let response = ask(server.at("/v1/messages"), &hello(stream))
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), status);
            check_request_id(&response);
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["type"], "error");
            assert_eq!(body["error"]["type"], kind);
            assert!(
                body["error"]["message"].as_str().unwrap().contains(words),
                "{body}"
            );
        }
    }
}

#[tokio::test]
async fn a_clients_mistake_names_the_field() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for (body, field) in [
        (json!({}), "model"),
        (json!({"model": "m", "messages": []}), "messages"),
        (
            json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}]}),
            "messages[0].content[0].tool_use_id",
        ),
        (
            json!({"model": "m", "messages": [], "mcp_servers": [{}]}),
            "mcp_servers",
        ),
    ] {
        for path in ["/v1/messages", "/v1/messages/count_tokens"] {
            let response = ask(server.at(path), &body).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::BAD_REQUEST);
            let error: Value = response.json().await.unwrap();
            assert_eq!(error["error"]["type"], "invalid_request_error");
            assert!(
                error["error"]["message"].as_str().unwrap().contains(field),
                "{error}"
            );
        }
    }
    let broken = Client::new()
        .post(server.at("/v1/messages"))
        .body("{\"model\": ")
        .send()
        .await
        .unwrap();
    assert_eq!(broken.status(), StatusCode::BAD_REQUEST);
    let error: Value = broken.json().await.unwrap();
    assert_eq!(error["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn what_no_handler_sees_is_refused_in_anthropics_shape_too() {
    let options = Options {
        api_keys: vec![ApiKey::new("key")],
        body_limit_bytes: 1000,
        ..Options::default()
    };
    let server = start(ScriptedBackend::default(), options).await;
    let anonymous = ask(server.at("/v1/messages"), &hello(false))
        .send()
        .await
        .unwrap();
    let large = ask(
        server.at("/v1/messages"),
        &json!({"system": "x".repeat(2000)}),
    )
    .header("x-api-key", "key")
    .send()
    .await
    .unwrap();
    let nowhere = Client::new()
        .get(server.at("/anthropic/v1/files"))
        .bearer_auth("key")
        .send()
        .await
        .unwrap();
    let wrong_method = Client::new()
        .get(server.at("/v1/messages"))
        .bearer_auth("key")
        .send()
        .await
        .unwrap();
    for (response, status, kind) in [
        (anonymous, 401, "authentication_error"),
        (large, 413, "request_too_large"),
        (nowhere, 404, "not_found_error"),
        (wrong_method, 405, "invalid_request_error"),
    ] {
        assert_eq!(response.status(), status);
        check_request_id(&response);
        let body: Value = response.json().await.unwrap();
        assert_eq!(
            (&body["type"], &body["error"]["type"]),
            (&json!("error"), &json!(kind))
        );
    }
}

#[tokio::test]
async fn tokens_are_counted_while_a_generation_runs() {
    let body = json!({
        "model": "small",
        "system": "abc",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "foo"}]}],
        "tools": [],
    });
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let requests = (0..50).map(|index| {
        let path = match index % 3 {
            0 => "/v1/messages/count_tokens?beta=true",
            1 => "/messages/count_tokens",
            _ => "/anthropic/v1/messages/count_tokens",
        };
        ask(server.at(path), &body).send()
    });
    for response in futures::future::join_all(requests).await {
        let count: Value = response.unwrap().json().await.unwrap();
        // The scripted tokenizer makes a token of each letter.
        assert_eq!(count, json!({"input_tokens": 6}));
    }
}

#[tokio::test]
async fn every_spelling_of_a_prompt_reaches_the_backend_as_one() {
    let backend = Arc::new(
        ScriptedBackend::default()
            .then_events(says(&["a"]))
            .then_events(says(&["b"])),
    );
    let server = start_shared(
        Arc::clone(&backend) as Arc<dyn Backend>,
        Options::default(),
        Duration::ZERO,
    )
    .await;
    let mut blocks = hello(true);
    blocks["system"] = json!([
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332.0b8;"},
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
    ]);
    let mut plain = hello(false);
    plain["system"] = "Be brief.".into();
    for (path, body) in [
        ("/v1/messages?beta=true", &blocks),
        ("/anthropic/v1/messages", &plain),
    ] {
        let response = ask(server.at(path), body).send().await.unwrap();
        response.bytes().await.unwrap();
    }
    let requests = backend.requests();
    assert_eq!(requests[0], requests[1]);
    assert!(matches!(&requests[0].prompt, Prompt::Chat(chat) if chat.messages.len() == 2));
}

#[tokio::test]
async fn models_are_listed_in_the_shape_of_whoever_asks() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let (_, list) = get(server.at("/v1/models?limit=1000")).await;
    let ids: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        ["org/small", "flat", "claude-org/small", "claude-flat"]
    );
    assert_eq!(list["data"][0]["type"], "model");
    assert_eq!(list["data"][0]["lifecycle"], "active");
    assert_eq!(list["has_more"], false);
    // Without the header only where the path says whose words are wanted.
    let plain = |path: &str| Client::new().get(server.at(path)).send();
    let openai: Value = plain("/v1/models").await.unwrap().json().await.unwrap();
    assert_eq!(openai["object"], "list");
    for path in ["/anthropic/v1/models", "/anthropic/models"] {
        let own: Value = plain(path).await.unwrap().json().await.unwrap();
        assert_eq!(own["first_id"], "org/small");
    }
}

#[tokio::test]
async fn models_are_paged_and_found_by_id() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    let (_, page) = get(server.at("/anthropic/v1/models?limit=1&after_id=org%2Fsmall")).await;
    assert_eq!(page["data"][0]["id"], "flat");
    assert_eq!(page["has_more"], true);
    let (_, before) = get(server.at("/v1/models?before_id=flat")).await;
    assert_eq!(before["last_id"], "org/small");
    let (status, error) = get(server.at("/v1/models?limit=0")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["error"]["type"], "invalid_request_error");
    for path in ["/v1/models/org/small", "/anthropic/v1/models/org%2Fsmall"] {
        let (status, model) = get(server.at(path)).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(model["display_name"], "small");
        assert_eq!(model["max_input_tokens"], 2048);
    }
    let (status, error) = get(server.at("/v1/models/gone")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(error["error"]["type"], "not_found_error");
}
