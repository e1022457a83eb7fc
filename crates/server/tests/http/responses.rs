//! Responses and conversations: what is kept between requests, and what becomes of it.

use std::{sync::Arc, time::Duration};

use macmlx_inference::{
    Backend, ContentPart, GenerationEvent, InferenceError, Message, Prompt, Role, ScriptedBackend,
    ToolCallPart,
};
use macmlx_server::Options;
use macmlx_test_support::sse::{Reader, Record};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Served, completed, finished, led, says, start, start_shared, started, text};

/// A server whose answers are the given words, and the backend to look into.
async fn answering(answers: &[&str]) -> (Served, Arc<ScriptedBackend>) {
    let backend = answers
        .iter()
        .fold(ScriptedBackend::default(), |backend, words| {
            backend.then_events(says(&[words]))
        });
    serving(backend).await
}

async fn serving(backend: ScriptedBackend) -> (Served, Arc<ScriptedBackend>) {
    let backend = Arc::new(backend);
    let server = start_shared(
        Arc::clone(&backend) as Arc<dyn Backend>,
        Options::default(),
        Duration::ZERO,
    )
    .await;
    (server, backend)
}

async fn ask(server: &Served, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let mut request = Client::new().request(method, server.at(path));
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

async fn post(server: &Served, path: &str, body: Value) -> (u16, Value) {
    ask(server, Method::POST, path, Some(body)).await
}

async fn get(server: &Served, path: &str) -> (u16, Value) {
    ask(server, Method::GET, path, None).await
}

async fn delete(server: &Served, path: &str) -> (u16, Value) {
    ask(server, Method::DELETE, path, None).await
}

/// A response to `input` with some more fields.
async fn respond(server: &Served, input: &str, more: Value) -> Value {
    let mut body = json!({"model": "small", "input": input});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let (status, response) = post(server, "/v1/responses", body).await;
    assert_eq!(status, 200, "{response}");
    response
}

fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}

/// Ids of a list's items.
fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(id).collect()
}

/// Returns the turns of the request before `back` others: who said what.
fn said(backend: &ScriptedBackend, request: usize) -> Vec<(Role, String)> {
    match &backend.requests()[request].prompt {
        Prompt::Chat(chat) => chat
            .messages
            .iter()
            .map(|message| (message.role, message.joined_text()))
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn turns(turns: &[(Role, &str)]) -> Vec<(Role, String)> {
    turns
        .iter()
        .map(|&(role, text)| (role, text.to_owned()))
        .collect()
}

fn event(record: &Record) -> Value {
    match record {
        Record::Event { name, data } => {
            let event: Value = serde_json::from_str(data).unwrap();
            assert_eq!(name.as_deref(), event["type"].as_str());
            event
        }
        Record::Comment(comment) => panic!("clients do not count comments: {comment}"),
    }
}

#[tokio::test]
async fn a_response_is_there_until_it_is_deleted() {
    let (server, _) = answering(&["Paris.", "Rome."]).await;
    for path in ["/v1/responses", "/responses"] {
        let (status, response) =
            post(&server, path, json!({"model": "small", "input": "Hi"})).await;
        assert_eq!(status, 200);
        assert_eq!(response["model"], "org/small");
        assert_eq!(response["usage"]["total_tokens"], 5);
        let own = format!("{path}/{}", id(&response));
        assert_eq!(get(&server, &own).await, (200, response.clone()));
        let gone = json!({"id": id(&response), "object": "response", "deleted": true});
        assert_eq!(delete(&server, &own).await, (200, gone));
        for (status, error) in [get(&server, &own).await, delete(&server, &own).await] {
            assert_eq!(status, 404);
            assert_eq!(error["error"]["code"], "not_found");
        }
    }
}

#[tokio::test]
async fn a_streamed_response_is_kept_as_its_last_event_has_it() {
    let (server, _) = answering(&["Paris."]).await;
    let response = Client::new()
        .post(server.at("/v1/responses"))
        .json(&json!({"model": "small", "input": "Hi", "stream": true}))
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let records = Reader::new(response.bytes_stream()).rest().await;
    let events: Vec<Value> = records.iter().map(event).collect();
    let kinds: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], place);
    }
    let last = &events.last().unwrap()["response"];
    let own = format!("/v1/responses/{}", id(last));
    assert_eq!(get(&server, &own).await, (200, last.clone()));
}

#[tokio::test]
async fn a_response_follows_another_without_its_instructions() {
    let (server, backend) = answering(&["Paris.", "Rome.", "Bern."]).await;
    let first = respond(&server, "France?", json!({"instructions": "Be kind."})).await;
    let second = respond(
        &server,
        "Italy?",
        json!({"previous_response_id": id(&first), "instructions": "Be brief."}),
    )
    .await;
    assert_eq!(second["previous_response_id"], first["id"]);
    // What followed does not need what it followed any more.
    delete(&server, &format!("/v1/responses/{}", id(&first))).await;
    respond(
        &server,
        "Switzerland?",
        json!({"previous_response_id": id(&second)}),
    )
    .await;
    assert_eq!(
        said(&backend, 1),
        turns(&[
            (Role::System, "Be brief."),
            (Role::User, "France?"),
            (Role::Assistant, "Paris."),
            (Role::User, "Italy?"),
        ])
    );
    assert_eq!(
        said(&backend, 2),
        turns(&[
            (Role::User, "France?"),
            (Role::Assistant, "Paris."),
            (Role::User, "Italy?"),
            (Role::Assistant, "Rome."),
            (Role::User, "Switzerland?"),
        ])
    );
}

#[tokio::test]
async fn a_result_answers_a_call_of_the_response_before() {
    let call = |part| GenerationEvent::ToolCall {
        choice: 0,
        part,
        tokens: Vec::new(),
    };
    let calls = vec![
        started(),
        GenerationEvent::Reasoning {
            choice: 0,
            text: "I must look.".into(),
            tokens: Vec::new(),
        },
        call(ToolCallPart::Start {
            id: "call_1".into(),
            name: "mcp__a__look".into(),
        }),
        call(ToolCallPart::Arguments("{}".into())),
        call(ToolCallPart::End),
        finished(),
        completed(),
    ];
    let backend = ScriptedBackend::default()
        .then_events(calls.into_iter().map(Ok).collect())
        .then_events(says(&["Blue."]));
    let (server, backend) = serving(backend).await;
    let tools = json!([{"type": "namespace", "name": "mcp__a", "description": "",
        "tools": [{"type": "function", "name": "look"}]}]);
    let first = respond(&server, "Sky?", json!({"tools": tools})).await;
    let made = &first["output"][1];
    assert_eq!(made["name"], "look");
    assert_eq!(made["namespace"], "mcp__a");
    let (status, _) = post(
        &server,
        "/v1/responses",
        json!({
            "model": "small",
            "previous_response_id": id(&first),
            "tools": tools,
            "input": [{"type": "function_call_output", "call_id": "call_1", "output": "blue"}],
        }),
    )
    .await;
    assert_eq!(status, 200);
    let Prompt::Chat(chat) = backend.requests()[1].prompt.clone() else {
        panic!("a conversation was asked for");
    };
    let [_, asked, answered]: [Message; 3] = chat.messages.try_into().unwrap();
    assert_eq!(asked.reasoning.as_deref(), Some("I must look."));
    assert_eq!(asked.tool_calls[0].name, "mcp__a__look");
    assert_eq!(answered.tool_call_id.as_deref(), Some("call_1"));
    assert_eq!(answered.content, [ContentPart::Text("blue".into())]);
}

#[tokio::test]
async fn what_is_not_kept_cannot_be_followed() {
    let failure = InferenceError::Engine {
        message: "lost".into(),
    };
    let backend = ScriptedBackend::default()
        .then_events(says(&["Paris."]))
        .then_events(vec![Ok(started()), Ok(text("a")), Err(failure)]);
    let (server, _) = serving(backend).await;
    let unkept = respond(&server, "Hi", json!({"store": false})).await;
    let failed = Client::new()
        .post(server.at("/v1/responses"))
        .json(&json!({"model": "small", "input": "Hi", "stream": true}))
        .send()
        .await
        .unwrap();
    let records = Reader::new(failed.bytes_stream()).rest().await;
    let failed = event(records.last().unwrap());
    assert_eq!(failed["type"], "response.failed");
    for unknown in [id(&unkept), id(&failed["response"]), "resp_never", ""] {
        let body = json!({"model": "small", "input": "Hi", "previous_response_id": unknown});
        let (status, error) = post(&server, "/v1/responses", body).await;
        // Codex tries 404 five times over.
        assert_eq!(status, 400, "{unknown}");
        assert_eq!(error["error"]["code"], "previous_response_not_found");
        assert_eq!(error["error"]["param"], "previous_response_id");
    }
}

#[tokio::test]
async fn a_client_who_leaves_leaves_nothing_behind() {
    let (backend, mut hand) = led();
    let server = start(backend, Options::default()).await;
    hand.admit();
    hand.say(started());
    let response = Client::new()
        .post(server.at("/v1/responses"))
        .json(&json!({"model": "small", "input": "Hi", "stream": true}))
        .send()
        .await
        .unwrap();
    let mut reader = Reader::new(response.bytes_stream());
    let created = event(&reader.next().await.unwrap());
    drop(reader);
    hand.dropped().await;
    let own = format!("/v1/responses/{}", id(&created["response"]));
    assert_eq!(get(&server, &own).await.0, 404);
}

#[tokio::test]
async fn items_are_referred_to_by_id() {
    let (server, backend) = answering(&["Paris.", "Rome.", "Bern."]).await;
    let first = respond(&server, "France?", json!({})).await;
    let said_before = json!({"type": "item_reference", "id": first["output"][0]["id"]});
    let body =
        json!({"model": "small", "input": [said_before, {"role": "user", "content": "So?"}]});
    assert_eq!(post(&server, "/v1/responses", body.clone()).await.0, 200);
    assert_eq!(
        said(&backend, 1),
        turns(&[(Role::Assistant, "Paris."), (Role::User, "So?")])
    );
    // Where it comes before anyway, it is told once.
    let mut again = body;
    again["previous_response_id"] = first["id"].clone();
    assert_eq!(post(&server, "/v1/responses", again).await.0, 200);
    assert_eq!(
        said(&backend, 2),
        turns(&[
            (Role::User, "France?"),
            (Role::Assistant, "Paris."),
            (Role::User, "So?"),
        ])
    );
    let unknown =
        json!({"model": "small", "input": [{"type": "item_reference", "id": "msg_never"}]});
    let (status, error) = post(&server, "/v1/responses", unknown).await;
    assert_eq!(status, 400);
    assert_eq!(error["error"]["param"], "input[0].id");
}

#[tokio::test]
async fn input_items_come_in_pages() {
    let (server, _) = answering(&["ok"]).await;
    let input = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"type": "message", "id": "msg_own", "role": "user", "content": [{"type": "input_text", "text": "c"}]},
    ]);
    let (_, response) = post(
        &server,
        "/v1/responses",
        json!({"model": "small", "input": input}),
    )
    .await;
    let path = format!("/v1/responses/{}/input_items", id(&response));
    let (status, newest_first) = get(&server, &path).await;
    assert_eq!(status, 200);
    assert_eq!(newest_first["object"], "list");
    assert_eq!(newest_first["first_id"], "msg_own");
    assert_eq!(newest_first["has_more"], false);
    assert_eq!(newest_first["data"][1]["content"][0]["type"], "output_text");
    let all = ids(&newest_first);
    assert_eq!(all.len(), 3);
    let (_, page) = get(&server, &format!("{path}?order=asc&limit=2")).await;
    assert_eq!(ids(&page), [all[2], all[1]]);
    assert_eq!(page["has_more"], true);
    let (_, rest) = get(
        &server,
        &format!("{path}?order=asc&limit=2&after={}", all[1]),
    )
    .await;
    assert_eq!(ids(&rest), ["msg_own"]);
    assert_eq!(rest["has_more"], false);
    for (query, param) in [
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("order=up", "order"),
        ("after=msg_never", "after"),
    ] {
        let (status, error) = get(&server, &format!("{path}?{query}")).await;
        assert_eq!(status, 400, "{query}");
        assert_eq!(error["error"]["param"], param);
    }
    let never = get(&server, "/v1/responses/resp_never/input_items").await;
    assert_eq!(never.0, 404);
}

#[tokio::test]
async fn what_is_complete_cannot_be_cancelled() {
    let (server, _) = answering(&["ok"]).await;
    let response = respond(&server, "Hi", json!({})).await;
    let cancel = format!("/v1/responses/{}/cancel", id(&response));
    let (status, error) = ask(&server, Method::POST, &cancel, None).await;
    assert_eq!(status, 400);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("background"), "{message}");
    let (status, _) = ask(
        &server,
        Method::POST,
        "/v1/responses/resp_never/cancel",
        None,
    )
    .await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn what_is_not_served_is_said_in_json() {
    let (server, _) = answering(&["ok"]).await;
    let body = json!({"model": "small", "input": "Hi"});
    for path in [
        "/v1/responses/compact",
        "/v1/responses/x/y",
        "/responses/compact",
    ] {
        let (status, error) = post(&server, path, body.clone()).await;
        assert_eq!(status, 404, "{path}");
        assert_eq!(error["error"]["code"], "unknown_url");
    }
    let (status, error) = get(&server, "/v1/responses").await;
    assert_eq!(status, 405);
    assert_eq!(error["error"]["code"], "method_not_supported");
    let response = respond(&server, "Hi", json!({})).await;
    let (status, error) = get(
        &server,
        &format!("/v1/responses/{}?stream=true", id(&response)),
    )
    .await;
    assert_eq!(status, 400);
    assert_eq!(error["error"]["param"], "stream");
}

#[tokio::test]
async fn input_tokens_are_those_of_the_whole_prompt() {
    let (server, _) = answering(&["Paris."]).await;
    let first = respond(&server, "France?", json!({})).await;
    // The scripted tokenizer has a token for each character.
    for (body, tokens) in [
        (json!({"model": "small", "input": "abc"}), 3),
        (
            json!({"model": "small", "input": [{"role": "user", "content": "abc"}], "instructions": "de"}),
            5,
        ),
        (
            json!({"model": "small", "input": "abc", "previous_response_id": id(&first)}),
            "France?Paris.abc".len(),
        ),
    ] {
        let (status, count) = post(&server, "/v1/responses/input_tokens", body).await;
        assert_eq!(status, 200);
        assert_eq!(
            count,
            json!({"object": "response.input_tokens", "input_tokens": tokens})
        );
    }
    let (status, error) = post(&server, "/v1/responses/input_tokens", json!({"input": "a"})).await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("model")));
}

#[tokio::test]
async fn a_conversation_grows_with_its_responses() {
    let (server, backend) = answering(&["Paris.", "Rome."]).await;
    let (status, conversation) = post(
        &server,
        "/v1/conversations",
        json!({"metadata": {"a": "b"}, "items": [{"role": "system", "content": "Be brief."}]}),
    )
    .await;
    assert_eq!(status, 200);
    assert_eq!(conversation["object"], "conversation");
    let own = id(&conversation).to_owned();
    let path = format!("/v1/conversations/{own}");
    assert_eq!(get(&server, &path).await, (200, conversation.clone()));
    let first = respond(&server, "France?", json!({"conversation": own})).await;
    assert_eq!(first["conversation"], json!({"id": own}));
    // Unkept responses are said in the conversation all the same.
    let second = json!({"conversation": {"id": own}, "store": false});
    respond(&server, "Italy?", second).await;
    assert_eq!(
        said(&backend, 1),
        turns(&[
            (Role::System, "Be brief."),
            (Role::User, "France?"),
            (Role::Assistant, "Paris."),
            (Role::User, "Italy?"),
        ])
    );
    let (_, items) = get(&server, &format!("{path}/items?order=asc&limit=100")).await;
    let texts: Vec<_> = items["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["Be brief.", "France?", "Paris.", "Italy?", "Rome."]);
    let gone = json!({"id": own, "object": "conversation.deleted", "deleted": true});
    assert_eq!(delete(&server, &path).await, (200, gone));
    assert_eq!(get(&server, &path).await.0, 404);
    let body = json!({"model": "small", "input": "Hi", "conversation": own});
    let (status, error) = post(&server, "/v1/responses", body).await;
    assert_eq!(status, 400);
    assert_eq!(error["error"]["code"], "conversation_not_found");
    // Responses stay when their conversation goes.
    let kept = get(&server, &format!("/v1/responses/{}", id(&first))).await;
    assert_eq!(kept.0, 200);
}

#[tokio::test]
async fn a_conversation_is_changed_item_by_item() {
    let (server, _) = answering(&[]).await;
    let (_, conversation) = post(&server, "/v1/conversations", json!({})).await;
    assert_eq!(conversation["metadata"], json!({}));
    let path = format!("/v1/conversations/{}", id(&conversation));
    let (status, changed) = post(&server, &path, json!({"metadata": {"topic": "x"}})).await;
    assert_eq!(status, 200);
    assert_eq!(changed["metadata"], json!({"topic": "x"}));
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let items = json!({"items": [{"role": "user", "content": "a"}, call]});
    let (status, added) = post(&server, &format!("{path}/items"), items).await;
    assert_eq!(status, 200);
    assert_eq!(added["object"], "list");
    let result = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
    let (status, second) = post(
        &server,
        &format!("{path}/items"),
        json!({"items": [result]}),
    )
    .await;
    assert_eq!(status, 200);
    let (_, all) = get(&server, &format!("{path}/items?order=asc")).await;
    assert_eq!(ids(&all), [ids(&added), ids(&second)].concat());
    let message = format!("{path}/items/{}", ids(&all)[0]);
    assert_eq!(get(&server, &message).await, (200, all["data"][0].clone()));
    assert_eq!(delete(&server, &message).await, (200, changed));
    assert_eq!(get(&server, &message).await.0, 404);
    assert_eq!(delete(&server, &message).await.0, 404);
    for (path, body, param) in [
        (path.clone(), json!({}), "metadata"),
        (path.clone(), json!({"metadata": 1}), "metadata"),
        (format!("{path}/items"), json!({}), "items"),
        (
            format!("{path}/items"),
            json!({"items": [result]}),
            "items[0].call_id",
        ),
        (
            "/v1/conversations".into(),
            json!({"items": [{"role": "robot", "content": ""}]}),
            "items[0].role",
        ),
    ] {
        let (status, error) = post(&server, &path, body.clone()).await;
        assert_eq!(status, 400, "{body}");
        assert_eq!(error["error"]["param"], param);
    }
    let never = post(
        &server,
        "/v1/conversations/conv_never/items",
        json!({"items": []}),
    )
    .await;
    assert_eq!(never.0, 404);
}

#[tokio::test]
async fn silence_is_filled_with_events() {
    let (backend, mut hand) = led();
    let options = Options {
        keep_alive: Duration::from_millis(50),
        ..Options::default()
    };
    let server = start(backend, options).await;
    let response = Client::new()
        .post(server.at("/v1/responses"))
        .json(&json!({"model": "small", "input": "Hi", "stream": true}))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut reader = Reader::new(response.bytes_stream());
    // Before the model has been loaded, and after.
    for expected in [
        "response.created",
        "response.in_progress",
        "response.in_progress",
    ] {
        assert_eq!(event(&reader.next().await.unwrap())["type"], expected);
    }
    hand.admit();
    hand.say(started());
    for _ in 0..2 {
        let sign = event(&reader.next().await.unwrap());
        assert_eq!(sign["type"], "response.in_progress");
        assert_eq!(sign["response"]["output"], json!([]));
    }
    hand.say(text("now"));
    loop {
        let next = event(&reader.next().await.unwrap());
        if next["type"] != "response.in_progress" {
            assert_eq!(next["type"], "response.output_item.added");
            break;
        }
    }
    hand.say(finished());
    hand.say(completed());
    drop(hand.events);
    let last = reader.rest().await;
    assert_eq!(event(last.last().unwrap())["type"], "response.completed");
}

#[tokio::test]
async fn a_refusal_after_the_head_is_told_twice() {
    let (backend, mut hand) = led();
    let options = Options {
        keep_alive: Duration::from_millis(50),
        ..Options::default()
    };
    let server = start(backend, options).await;
    let response = Client::new()
        .post(server.at("/v1/responses"))
        .json(&json!({"model": "small", "input": "Hi", "stream": true}))
        .send()
        .await
        .unwrap();
    let refusal = InferenceError::ContextLength {
        prompt_tokens: 9,
        limit: 8,
    };
    hand.admit.take().unwrap().send(Err(refusal)).unwrap();
    let records = Reader::new(response.bytes_stream()).rest().await;
    let [.., error, failed] = records.as_slice() else {
        panic!("{records:?}");
    };
    // SDKs raise the first, Codex reads the second.
    assert_eq!(event(error)["error"]["code"], "context_length_exceeded");
    let failed = event(failed);
    assert_eq!(failed["type"], "response.failed");
    assert_eq!(
        failed["response"]["error"]["code"],
        "context_length_exceeded"
    );
}

#[tokio::test]
async fn refusals_have_their_status_before_the_head() {
    let backend = ScriptedBackend::default()
        .then_error(InferenceError::ModelNotFound {
            reference: "gone".into(),
            suggestions: Vec::new(),
        })
        .then_error(InferenceError::ContextLength {
            prompt_tokens: 9,
            limit: 8,
        });
    let (server, _) = serving(backend).await;
    for (stream, status, code) in [
        (true, 404, "model_not_found"),
        (false, 400, "context_length_exceeded"),
    ] {
        let body = json!({"model": "gone", "input": "Hi", "stream": stream});
        let (got, error) = post(&server, "/v1/responses", body).await;
        assert_eq!(got, status);
        assert_eq!(error["error"]["code"], code);
    }
}

#[tokio::test]
async fn bodies_of_every_kind_are_answered() {
    let (server, _) = answering(&[]).await;
    let deep = format!("{{\"input\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let bodies = [
        "",
        "[]",
        "null",
        "{",
        "{\"input\":NaN}",
        "\u{feff}{}",
        &deep,
    ];
    for path in [
        "/v1/responses",
        "/v1/responses/input_tokens",
        "/v1/conversations/conv_never",
        "/v1/conversations/conv_never/items",
    ] {
        for body in bodies {
            let response = Client::new()
                .post(server.at(path))
                .header("content-type", "application/json")
                .body(body.to_owned())
                .send()
                .await
                .unwrap();
            let status = response.status().as_u16();
            assert!(matches!(status, 400 | 404), "{path}: {status}");
            let error: Value = response.json().await.unwrap();
            assert!(error["error"]["message"].is_string(), "{path}");
        }
    }
}
