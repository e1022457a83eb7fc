//! `/x/chat`: asked, answered, stopped, failed.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use futures::StreamExt;
use macmlx_inference::{
    ContentPart, FinishReason, GenerateRequest, ImageSource, InferenceError, Prompt, Role,
    ScriptedBackend, ToolChoice,
};
use serde_json::{Value, json};

use crate::support::{
    Held, MODEL, Running, answer, ended, good, nothing, reasoning, started, text, types,
};

/// Role and text of each message of a request.
fn prompt(request: &GenerateRequest) -> Vec<(Role, String)> {
    let Prompt::Chat(chat) = &request.prompt else {
        panic!("a chat");
    };
    chat.messages
        .iter()
        .map(|message| (message.role, message.joined_text()))
        .collect()
}

fn said(role: Role, text: &str) -> (Role, String) {
    (role, text.to_owned())
}

/// Reads the answer until something is said.
async fn until(
    stream: &mut (impl StreamExt<Item = Result<axum::body::Bytes, axum::Error>> + Unpin),
    wanted: &str,
) {
    let mut all = String::new();
    while !all.contains(wanted) {
        let bytes = stream.next().await.unwrap().unwrap();
        all.push_str(std::str::from_utf8(&bytes).unwrap());
    }
}

fn stream(body: Body) -> impl StreamExt<Item = Result<axum::body::Bytes, axum::Error>> + Unpin {
    body.into_data_stream()
}

/// Waits for the last message of a conversation to end in some way.
async fn ending(running: &Running, id: &str) -> Value {
    for _ in 0..500 {
        let conversation = running.conversation(id).await;
        let last = conversation["messages"].as_array().unwrap().last().cloned();
        if let Some(last) = last.filter(|last| last["finishReason"].is_string()) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the answer never ended");
}

#[tokio::test]
async fn a_question_is_answered_and_all_of_it_is_kept() {
    let mut events = vec![
        started(),
        reasoning("Hm. "),
        reasoning("Yes."),
        text("It "),
        text("is."),
    ];
    events.extend(ended(FinishReason::Stop));
    let backend = Arc::new(
        ScriptedBackend::default()
            .then_events(good(events))
            .then_events(good(answer("Still."))),
    );
    let running = Running::new(backend.clone());
    let id = running.begin(&json!({"modelID": MODEL})).await;
    let heard = running
        .ask(&json!({"conversation_id": id, "content": "Is it  so?\nReally"}))
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
            "message",
            "finished"
        ]
    );
    assert_eq!(heard[0]["message"]["role"], "user");
    assert_eq!(heard[1]["title"], "Is it so? Really");
    assert_eq!(heard[2]["model"], MODEL);
    assert_eq!(
        heard[4],
        json!({"type": "prefill", "processed": 4, "total": 12, "cached": 4})
    );
    let finished = heard.last().unwrap();
    assert_eq!(finished["reason"], "stop");
    assert_eq!(finished["usage"]["completionTokens"], 11);
    assert_eq!(finished["timings"]["tokensPerSecond"], 10.0);
    assert!(finished["timings"]["ttftMs"].is_u64());

    let conversation = running.conversation(&id).await;
    assert_eq!(conversation["title"], "Is it so? Really");
    let last = &conversation["messages"][1];
    assert_eq!(last["id"], heard[2]["id"]);
    assert_eq!(
        (&last["content"], &last["reasoning"]),
        (&json!("It is."), &json!("Hm. Yes."))
    );
    assert!(last["reasoningSeconds"].is_f64());
    assert_eq!(last["finishReason"], "stop");
    assert_eq!(last["tokenCount"], 11);
    assert_eq!(last["model"], MODEL);
    assert_eq!(running.file(&id)["messages"][1]["usage"], finished["usage"]);

    let heard = running
        .ask(&json!({"conversation_id": id, "content": "Sure?"}))
        .await;
    assert!(!types(&heard).contains(&"title"));
    let second = &backend.requests()[1];
    assert_eq!(
        prompt(second),
        [
            said(Role::User, "Is it  so?\nReally"),
            said(Role::Assistant, "It is."),
            said(Role::User, "Sure?"),
        ]
    );
    let Prompt::Chat(chat) = &second.prompt else {
        panic!("a chat");
    };
    assert_eq!(chat.messages[1].reasoning.as_deref(), Some("Hm. Yes."));
}

#[tokio::test]
async fn parameters_and_prompts_come_from_the_nearest() {
    let backend = ScriptedBackend::default();
    let backend = (0..4).fold(backend, |backend, _| backend.then_events(good(answer("a"))));
    let backend = Arc::new(backend);
    let running = Running::new(backend.clone());
    let path = "/x/models/org%2Fsmall/parameters";
    running
        .good(
            "PATCH",
            path,
            &json!({"systemPrompt": "The model's.", "topK": 3}),
        )
        .await;
    let id = running.begin(&json!({"modelID": MODEL})).await;
    let ask = async |more: Value| {
        let mut body = json!({"conversation_id": id, "content": "?"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        running.ask(&body).await;
        backend.requests().pop().unwrap()
    };
    let request = ask(nothing()).await;
    assert_eq!(prompt(&request)[0], said(Role::System, "The model's."));
    // The rest of the model's parameters is for the backend to fill in.
    assert_eq!(request.sampling.top_k, None);
    assert_eq!(request.reasoning.enabled, None);

    let place = format!("/x/conversations/{id}");
    running
        .good(
            "PATCH",
            &place,
            &json!({"systemPrompt": "Its own.", "parameters": {"topP": 0.5, "topK": 7, "reasoning": true}}),
        )
        .await;
    let request = ask(nothing()).await;
    assert_eq!(prompt(&request)[0], said(Role::System, "Its own."));
    assert_eq!(
        (request.sampling.top_p, request.sampling.top_k),
        (Some(0.5), Some(7))
    );
    assert_eq!(
        (request.reasoning.enabled, request.reasoning.is_hint),
        (Some(true), true)
    );

    let request = ask(json!({
        "parameters": {"topK": 9, "systemPrompt": "For once.", "maxTokens": 5},
        "reasoning": false, "use_tools": false, "model": "org/large"
    }))
    .await;
    assert_eq!(request.model, "org/large");
    assert_eq!(prompt(&request)[0], said(Role::System, "For once."));
    assert_eq!(
        (request.sampling.top_p, request.sampling.top_k),
        (Some(0.5), Some(9))
    );
    assert_eq!(request.stop.max_tokens, Some(5));
    assert_eq!(
        (request.reasoning.enabled, request.reasoning.is_hint),
        (Some(false), false)
    );
    let Prompt::Chat(chat) = &request.prompt else {
        panic!("a chat");
    };
    assert_eq!(chat.tool_choice, ToolChoice::None);
    assert_eq!(running.conversation(&id).await["modelID"], "org/large");
    assert_eq!(ask(nothing()).await.model, "org/large");
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_and_changes_nothing() {
    let running = Running::new(Arc::new(ScriptedBackend::default()));
    let id = running.begin(&json!({"modelID": MODEL})).await;
    let before = running.file(&id);
    for (more, expected) in [
        (
            json!({"content": " "}),
            (400, "invalid_request", Some("content")),
        ),
        (
            json!({"content": "?", "model": "org/gone"}),
            (404, "model_not_found", None),
        ),
        (
            json!({"content": "?", "parameters": {"topP": 2}}),
            (400, "invalid_request", Some("parameters.topP")),
        ),
        (
            json!({"content": "?", "parameters": {"adapterName": "x"}}),
            (400, "invalid_request", Some("parameters.adapterName")),
        ),
        (
            json!({"content": "?", "parameters": {"alias": "x"}}),
            (400, "invalid_request", Some("parameters.alias")),
        ),
        (
            json!({"content": "?", "parameters": {"top_p": 1}}),
            (400, "invalid_request", Some("parameters.top_p")),
        ),
        (
            json!({"content": 5}),
            (400, "invalid_request", Some("content")),
        ),
        (
            json!({"contents": "?"}),
            (400, "invalid_request", Some("contents")),
        ),
        (nothing(), (409, "wrong_state", None)),
    ] {
        let mut body = json!({"conversation_id": id});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let (status, code, param) = running.bad("POST", "/x/chat", &body).await;
        assert_eq!(
            (status, code.as_str(), param.as_deref()),
            expected,
            "{body}"
        );
    }
    assert_eq!(running.file(&id), before);
    for id in ["nothing", "0B8A4F0C-6E3D-4C53-9A55-1D3C0D5C8F10"] {
        let body = json!({"conversation_id": id, "content": "?"});
        let (status, code, _) = running.bad("POST", "/x/chat", &body).await;
        assert_eq!((status, code.as_str()), (404, "conversation_not_found"));
    }
}

#[tokio::test]
async fn without_a_choice_and_for_one_that_is_gone_the_servers_choice_answers() {
    let scripted = ScriptedBackend::default()
        .then_events(good(answer("I.")))
        .then_events(good(answer("I, too.")));
    let running = Running::new(Arc::new(scripted));
    let question = |id: &str| json!({"conversation_id": id, "content": "Who?"});
    let id = running.begin(&nothing()).await;
    running.ask(&question(&id)).await;
    let conversation = running.conversation(&id).await;
    assert_eq!(conversation["modelID"], MODEL);
    let id = running.begin(&json!({"modelID": "org/gone"})).await;
    running.ask(&question(&id)).await;
    let conversation = running.conversation(&id).await;
    assert_eq!(conversation["messages"][1]["model"], MODEL);
}

#[tokio::test]
async fn an_answer_that_fails_says_why_and_does_not_haunt_the_next() {
    let broken = vec![
        Ok(started()),
        Ok(text("It be")),
        Err(InferenceError::Engine {
            message: "no more".into(),
        }),
    ];
    let backend = Arc::new(
        ScriptedBackend::default()
            .then_error(InferenceError::ContextLength {
                prompt_tokens: 9,
                limit: 8,
            })
            .then_events(broken)
            .then_events(good(vec![started(), text("Cut")]))
            .then_events(good(answer("Well."))),
    );
    let running = Running::new(backend.clone());
    let id = running.begin(&json!({"modelID": MODEL})).await;
    let heard = running
        .ask(&json!({"conversation_id": id, "content": "One"}))
        .await;
    let last = heard.last().unwrap();
    assert_eq!(
        (&last["type"], &last["code"]),
        (&json!("error"), &json!("context_length_exceeded"))
    );
    let stored = &heard[heard.len() - 2]["message"];
    assert_eq!(
        (&stored["finishReason"], &stored["content"]),
        (&json!("error"), &json!(""))
    );
    assert_eq!(stored["error"], last["message"]);

    let heard = running
        .ask(&json!({"conversation_id": id, "content": "Two"}))
        .await;
    assert_eq!(heard.last().unwrap()["code"], "engine_failed");
    let conversation = running.conversation(&id).await;
    assert_eq!(conversation["messages"][3]["content"], "It be");
    assert_eq!(conversation["messages"][3]["finishReason"], "error");

    // A stream that just ends is a failure, too.
    let heard = running
        .ask(&json!({"conversation_id": id, "content": "Three"}))
        .await;
    assert_eq!(heard.last().unwrap()["code"], "engine_failed");

    running
        .ask(&json!({"conversation_id": id, "content": "Four"}))
        .await;
    assert_eq!(
        prompt(&backend.requests()[3]),
        [
            said(Role::User, "One"),
            said(Role::User, "Two"),
            said(Role::Assistant, "It be"),
            said(Role::User, "Three"),
            said(Role::Assistant, "Cut"),
            said(Role::User, "Four"),
        ]
    );
}

#[tokio::test]
async fn whoever_leaves_stops_the_answer_and_keeps_what_was_written() {
    let (backend, events) = Held::new();
    let running = Running::new(backend);
    let id = running.begin(&json!({"modelID": MODEL})).await;
    let body = json!({"conversation_id": id, "content": "Tell me"});
    let response = running.send("POST", "/x/chat", &body).await;
    let mut answer = stream(response.into_body());
    for event in [started(), reasoning("Let me"), text("Once upon")] {
        events.unbounded_send(Ok(event)).unwrap();
    }
    until(&mut answer, "Once upon").await;

    // Meanwhile no other request may answer it or change its messages; the rest may change.
    let place = format!("/x/conversations/{id}");
    let message = running.conversation(&id).await["messages"][0]["id"].clone();
    let message = format!("{place}/messages/{}", message.as_str().unwrap());
    let again = json!({"conversation_id": id, "content": "And?"});
    let edit = json!({"content": "Tell me more"});
    let back = json!({"inclusive": true});
    let truncate = format!("{message}/truncate");
    let (chat, patch, delete, rewind, remove) = tokio::join!(
        running.bad("POST", "/x/chat", &again),
        running.bad("PATCH", &message, &edit),
        running.bad("DELETE", &message, &Value::Null),
        running.bad("POST", &truncate, &back),
        running.bad("DELETE", &place, &Value::Null),
    );
    for (status, code, _) in [chat, patch, delete, rewind, remove] {
        assert_eq!((status, code.as_str()), (409, "busy"));
    }
    running
        .good("PATCH", &place, &json!({"title": "A tale"}))
        .await;

    drop(answer);
    let last = ending(&running, &id).await;
    assert_eq!(last["finishReason"], "cancelled");
    assert_eq!(
        (&last["content"], &last["reasoning"]),
        (&json!("Once upon"), &json!("Let me"))
    );
    assert_eq!(running.conversation(&id).await["title"], "A tale");
    // The backend's stream was dropped with it.
    assert!(events.is_closed());
    running.ask(&again).await;
    assert_eq!(
        running.conversation(&id).await["messages"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

#[tokio::test]
async fn a_question_right_after_a_stop_waits_for_what_is_being_stored() {
    let (backend, events) = Held::new();
    let running = Running::new(backend);
    let id = running.begin(&json!({"modelID": MODEL})).await;
    let body = json!({"conversation_id": id, "content": "Tell me"});
    let response = running.send("POST", "/x/chat", &body).await;
    let mut answer = stream(response.into_body());
    events.unbounded_send(Ok(text("Once"))).unwrap();
    until(&mut answer, "Once").await;
    drop(answer);
    running.ask(&body).await;
    let conversation = running.conversation(&id).await;
    let endings: Vec<&Value> = conversation["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["finishReason"])
        .collect();
    assert_eq!(
        endings,
        [
            &Value::Null,
            &json!("cancelled"),
            &Value::Null,
            &json!("stop")
        ]
    );
}

#[tokio::test]
async fn a_stop_before_the_first_word_is_kept_and_can_be_answered_again() {
    let (backend, events) = Held::new();
    let running = Running::new(backend);
    let id = running.begin(&json!({"modelID": MODEL})).await;
    let body = json!({"conversation_id": id, "content": "Tell me"});
    drop(running.send("POST", "/x/chat", &body).await);
    let last = ending(&running, &id).await;
    assert_eq!(
        (&last["finishReason"], &last["content"]),
        (&json!("cancelled"), &json!(""))
    );
    // Whether or not the backend was asked by then, it has this to say now.
    for event in answer("later") {
        let _ = events.unbounded_send(Ok(event));
    }
    drop(events);
    running.ask(&json!({"conversation_id": id})).await;
    assert_eq!(ending(&running, &id).await["content"], "later");
    // Now it is answered.
    let (status, code, _) = running
        .bad("POST", "/x/chat", &json!({"conversation_id": id}))
        .await;
    assert_eq!((status, code.as_str()), (409, "wrong_state"));
}

#[tokio::test]
async fn pictures_of_old_conversations_are_part_of_the_question() {
    let backend = Arc::new(ScriptedBackend::default().then_events(good(answer("A cat."))));
    let running = Running::new(backend.clone());
    let id = "0B8A4F0C-6E3D-4C53-9A55-1D3C0D5C8F10";
    running.put_file(
        id,
        &json!({
            "id": id, "title": "Cat", "createdAt": 1.5, "updatedAt": 2.5, "modelID": MODEL,
            "systemPrompt": "", "messages": [{
                "id": "6C1D5E9E-7E1B-4C0E-8D0B-6F9F1B1A2C3D", "role": "user", "content": "What?",
                "timestamp": 2.5,
                "images": [{"fileURL": "file:///a.jpg", "mimeType": "image/jpeg"}]
            }]
        }),
    );
    running.ask(&json!({"conversation_id": id})).await;
    let Prompt::Chat(chat) = &backend.requests()[0].prompt else {
        panic!("a chat");
    };
    let ContentPart::Image(image) = &chat.messages[0].content[0] else {
        panic!("a picture");
    };
    assert_eq!(image.param, "messages[0].images[0]");
    assert_eq!(image.source, ImageSource::Url("file:///a.jpg".into()));
    assert_eq!(
        running.file(id)["messages"][0]["images"][0]["fileURL"],
        "file:///a.jpg"
    );
}

#[tokio::test]
async fn a_decision_nobody_waits_for_is_told() {
    let running = Running::new(Arc::new(ScriptedBackend::default()));
    let place = "/x/chat/approvals/call_1";
    let (status, code, _) = running
        .bad("POST", place, &json!({"decision": "deny"}))
        .await;
    assert_eq!((status, code.as_str()), (404, "approval_not_found"));
    let (status, _, param) = running
        .bad("POST", place, &json!({"decision": "maybe"}))
        .await;
    assert_eq!((status, param.as_deref()), (400, Some("decision")));
}
