//! Answers with tool calls: each round a message, results kept and told to the model again.

use std::{sync::Arc, time::Duration};

use macmlx_inference::{
    FinishReason, GenerationEvent, Message, Prompt, Role, ScriptedBackend, ToolCallPart, ToolRun,
    ToolRunEnd,
};
use serde_json::{Value, json};

use crate::support::{MODEL, Running, answer, ended, good, reasoning, started, text, types};

fn part(part: ToolCallPart) -> GenerationEvent {
    GenerationEvent::ToolCall {
        choice: 0,
        part,
        tokens: Vec::new(),
    }
}

fn call(id: &str, arguments: &[&str]) -> Vec<GenerationEvent> {
    let mut events = vec![part(ToolCallPart::Start {
        id: id.into(),
        name: "files__read".into(),
    })];
    for text in arguments {
        events.push(part(ToolCallPart::Arguments((*text).into())));
    }
    events.push(part(ToolCallPart::End));
    events
}

fn run(id: &str, run: ToolRun) -> GenerationEvent {
    GenerationEvent::ToolRun {
        choice: 0,
        id: id.into(),
        run,
    }
}

fn done(id: &str, end: ToolRunEnd, content: &str) -> GenerationEvent {
    run(
        id,
        ToolRun::Ended {
            end,
            content: content.into(),
            duration: Duration::from_millis(7),
        },
    )
}

/// Two calls, one of which is asked about and one denied, then the answer.
fn rounds() -> Vec<GenerationEvent> {
    let mut events = vec![started(), reasoning("Look."), text("Let me see.")];
    events.extend(call("one", &["{\"path\"", ": \"a\"}"]));
    events.extend(call("two", &["{\"path\": \"b\"}"]));
    events.push(run(
        "one",
        ToolRun::ApprovalNeeded {
            server: "files".into(),
            tool: "read".into(),
            arguments: "{\"path\": \"a\"}".into(),
        },
    ));
    events.push(run(
        "one",
        ToolRun::Began {
            server: "files".into(),
            tool: "read".into(),
        },
    ));
    events.push(done("one", ToolRunEnd::Done, "contents of a"));
    events.push(done(
        "two",
        ToolRunEnd::Denied,
        "The user denied this call.",
    ));
    events.push(GenerationEvent::Prefill {
        processed: 5,
        total: 30,
    });
    events.push(text("It says a."));
    events.extend(ended(FinishReason::Stop));
    events
}

fn messages(prompt: &Prompt) -> &[Message] {
    match prompt {
        Prompt::Chat(chat) => &chat.messages,
        _ => &[],
    }
}

#[tokio::test]
async fn each_round_is_a_message_and_is_told_again() {
    let backend = Arc::new(
        ScriptedBackend::default()
            .then_events(good(rounds()))
            .then_events(good(answer("Yes."))),
    );
    let running = Running::new(backend.clone());
    let id = running.begin(&json!({"modelID": MODEL})).await;
    let heard = running
        .ask(&json!({"conversation_id": id, "content": "Read"}))
        .await;
    assert_eq!(
        types(&heard),
        [
            "message",
            "title",
            "assistant_started",
            "loading",
            "prefill",
            "reasoning",
            "text",
            "tool_call",
            "tool_arguments",
            "tool_call_end",
            "tool_call",
            "tool_arguments",
            "tool_call_end",
            "tool_approval",
            "tool_started",
            "tool_result",
            "message",
            "assistant_started",
            "prefill",
            "text",
            "message",
            "finished"
        ]
    );
    let of = |kind: &str| -> Vec<&Value> {
        heard.iter().filter(|event| event["type"] == kind).collect()
    };
    assert_eq!(
        of("tool_call")[0]["call"],
        json!({"id": "one", "name": "files__read", "server": null, "title": null})
    );
    assert_eq!(
        *of("tool_approval")[0],
        json!({
            "type": "tool_approval", "id": "one", "name": "files__read", "server": "files",
            "arguments": "{\"path\": \"a\"}"
        })
    );
    assert_eq!(
        *of("tool_result")[1],
        json!({
            "type": "tool_result", "id": "two", "state": "denied",
            "content": "The user denied this call.", "duration_ms": 7
        })
    );
    let stored = running.conversation(&id).await;
    let stored = stored["messages"].as_array().unwrap();
    assert_eq!(stored.len(), 3);
    assert_eq!(stored[1]["finishReason"], "tool_calls");
    assert_eq!(
        stored[1]["toolCalls"][0],
        json!({
            "id": "one", "name": "files__read", "arguments": "{\"path\": \"a\"}", "server": "files",
            "state": "done", "result": "contents of a", "durationMs": 7
        })
    );
    assert_eq!(stored[2]["content"], "It says a.");
    assert_eq!(stored[2]["usage"]["completionTokens"], 11);

    running
        .ask(&json!({"conversation_id": id, "content": "Sure?"}))
        .await;
    let requests = backend.requests();
    let told = messages(&requests[1].prompt);
    let roles: Vec<Role> = told.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Tool,
            Role::Assistant,
            Role::User
        ]
    );
    assert_eq!(told[1].reasoning.as_deref(), Some("Look."));
    let ids: Vec<&str> = told[1].tool_calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids, ["one", "two"]);
    assert_eq!(told[2].tool_call_id.as_deref(), Some("one"));
    assert_eq!(told[2].name.as_deref(), Some("files__read"));
    assert_eq!(told[2].joined_text(), "contents of a");
    assert_eq!(told[3].joined_text(), "The user denied this call.");
}

#[tokio::test]
async fn a_call_that_broke_off_is_shown_and_not_told() {
    let mut events = vec![started(), text("Let me see.")];
    events.push(part(ToolCallPart::Start {
        id: "one".into(),
        name: "files__read".into(),
    }));
    events.push(part(ToolCallPart::Arguments("{\"pa".into())));
    events.extend(ended(FinishReason::Length));
    let backend = Arc::new(
        ScriptedBackend::default()
            .then_events(good(events))
            .then_events(good(answer("Well."))),
    );
    let running = Running::new(backend.clone());
    let id = running.begin(&json!({"modelID": MODEL})).await;
    running
        .ask(&json!({"conversation_id": id, "content": "Read"}))
        .await;
    let stored = &running.conversation(&id).await["messages"][1];
    assert_eq!(stored["finishReason"], "length");
    assert_eq!(stored["toolCalls"][0]["state"], "cancelled");
    running
        .ask(&json!({"conversation_id": id, "content": "And?"}))
        .await;
    let requests = backend.requests();
    let told = messages(&requests[1].prompt);
    assert_eq!(told.len(), 3);
    assert!(told[1].tool_calls.is_empty());
}

#[tokio::test]
async fn an_end_right_after_the_calls_is_told_in_their_message() {
    let mut events = vec![started()];
    events.extend(call("one", &[]));
    events.push(done("one", ToolRunEnd::Failed, "no such file"));
    events.extend(ended(FinishReason::Stop));
    let backend = Arc::new(
        ScriptedBackend::default()
            .then_events(good(events))
            .then_events(good(answer("Sorry."))),
    );
    let running = Running::new(backend.clone());
    let id = running.begin(&json!({"modelID": MODEL})).await;
    running
        .ask(&json!({"conversation_id": id, "content": "Read"}))
        .await;
    let stored = running.conversation(&id).await;
    assert_eq!(stored["messages"].as_array().unwrap().len(), 2);
    assert_eq!(stored["messages"][1]["finishReason"], "stop");
    assert_eq!(stored["messages"][1]["toolCalls"][0]["state"], "failed");
    assert_eq!(stored["messages"][1]["tokenCount"], 11);
    // What the tool said can still be answered.
    running.ask(&json!({"conversation_id": id})).await;
    let requests = backend.requests();
    let told = messages(&requests[1].prompt);
    assert_eq!(told[1].tool_calls[0].arguments, "{}");
    assert_eq!(told[2].joined_text(), "no such file");
}
