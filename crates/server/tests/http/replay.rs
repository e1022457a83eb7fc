//! Reasoning that a client does not send back with the calls it led to.

use std::{sync::Arc, time::Duration};

use macmlx_inference::{
    Backend, FinishReason, GenerationEvent, InferenceError, Message, Prompt, ScriptedBackend,
    ToolCallPart,
};
use macmlx_server::Options;
use reqwest::Client;
use serde_json::{Value, json};

use crate::support::{completed, says, start_shared, started};

/// A generation that thinks and then makes two calls.
fn thinks_and_calls() -> Vec<Result<GenerationEvent, InferenceError>> {
    let thought = |text: &str| GenerationEvent::Reasoning {
        choice: 0,
        text: text.into(),
        tokens: Vec::new(),
    };
    let part = |part| GenerationEvent::ToolCall {
        choice: 0,
        part,
        tokens: Vec::new(),
    };
    let mut events = vec![started(), thought("I should "), thought("look.")];
    for id in ["call_a", "call_b"] {
        events.push(part(ToolCallPart::Start {
            id: id.into(),
            name: "look".into(),
        }));
        events.push(part(ToolCallPart::Arguments("{}".into())));
        events.push(part(ToolCallPart::End));
    }
    events.push(GenerationEvent::Finished {
        choice: 0,
        reason: FinishReason::ToolCalls,
        stop_sequence: None,
    });
    events.push(completed());
    events.into_iter().map(Ok).collect()
}

fn replayed(id: &str, reasoning: &Value) -> Value {
    json!({
        "model": "small",
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": null, "reasoning_content": reasoning, "tool_calls": [
                {"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": id, "content": "nothing"},
        ],
        "tools": [{"type": "function", "function": {"name": "look"}}],
    })
}

async fn ask(url: &str, body: &Value) {
    let response = Client::new().post(url).json(body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    // The whole answer, so that all events have passed.
    response.bytes().await.unwrap();
}

fn messages(prompt: &Prompt) -> &[Message] {
    match prompt {
        Prompt::Chat(chat) => &chat.messages,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_led_to_a_call_is_put_back_before_it() {
    for stream in [false, true] {
        let backend = Arc::new((0..4).fold(
            ScriptedBackend::default().then_events(thinks_and_calls()),
            |backend, _| backend.then_events(says(&["done"])),
        ));
        let server = start_shared(
            Arc::clone(&backend) as Arc<dyn Backend>,
            Options::default(),
            Duration::ZERO,
        )
        .await;
        let url = server.at("/v1/chat/completions");
        let first = json!({
            "model": "small",
            "stream": stream,
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"type": "function", "function": {"name": "look"}}],
        });
        ask(&url, &first).await;
        for (id, sent, expected) in [
            ("call_a", json!(null), Some("I should look.")),
            ("call_b", json!(null), Some("I should look.")),
            ("call_a", json!("my own"), Some("my own")),
            ("call_c", json!(null), None),
        ] {
            ask(&url, &replayed(id, &sent)).await;
            let requests = backend.requests();
            let turns = messages(&requests.last().unwrap().prompt);
            assert_eq!(turns[1].reasoning.as_deref(), expected, "{id} {sent}");
            assert_eq!(turns[0].reasoning, None);
        }
    }
}
