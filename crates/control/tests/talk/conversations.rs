//! `/x/conversations`.

use std::sync::Arc;

use futures::StreamExt;
use macmlx_control::events::Event;
use macmlx_inference::ScriptedBackend;
use serde_json::{Value, json};

use crate::support::{Running, nothing};

fn running() -> Running {
    Running::new(Arc::new(ScriptedBackend::default()))
}

#[tokio::test]
async fn a_conversation_is_made_listed_changed_and_deleted() {
    let running = running();
    let mut told = Box::pin(running.events.subscribe());
    let made = running
        .good(
            "POST",
            "/x/conversations",
            &json!({"modelID": "org/small", "messages": [{"role": "user", "content": "Hello there"}]}),
        )
        .await;
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["title"], "Hello there");
    assert_eq!(made["systemPrompt"], "");
    assert!(made["createdAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(made["messages"][0]["images"], json!([]));
    assert!(matches!(told.next().await, Some(Event::ConversationChanged { id: of }) if of == id));
    // The file is as older versions write it.
    assert!(running.file(id)["createdAt"].is_f64());

    let list = running.good("GET", "/x/conversations", &Value::Null).await;
    let row = &list["conversations"][0];
    assert_eq!(row["preview"], "Hello there");
    assert_eq!(
        (&row["model"], &row["message_count"]),
        (&json!("org/small"), &json!(1))
    );
    assert_eq!(row["updated_at"], made["updatedAt"]);
    let found = async |words: &str| {
        let list = running
            .good(
                "GET",
                &format!("/x/conversations?search={words}"),
                &Value::Null,
            )
            .await;
        list["conversations"].as_array().unwrap().len()
    };
    assert_eq!((found("HELLO").await, found("bye").await), (1, 0));

    let place = format!("/x/conversations/{}", id.to_lowercase());
    let changed = running
        .good(
            "PATCH",
            &place,
            &json!({"title": " Greeting ", "modelID": null, "systemPrompt": "Be kind.",
                    "parameters": {"topK": 4, "temperature": 1}}),
        )
        .await;
    assert_eq!(changed["title"], "Greeting");
    assert!(changed["modelID"].is_null());
    assert_eq!(
        changed["parameters"],
        json!({"temperature": 1.0, "topK": 4})
    );
    let changed = running
        .good(
            "PATCH",
            &place,
            &json!({"title": null, "parameters": {"topK": null}}),
        )
        .await;
    assert_eq!(changed["title"], "Hello there");
    assert_eq!(changed["systemPrompt"], "Be kind.");
    assert_eq!(changed["parameters"], json!({"temperature": 1.0}));
    let changed = running
        .good("PATCH", &place, &json!({"parameters": null}))
        .await;
    assert_eq!(changed.get("parameters"), None);

    running.good("DELETE", &place, &Value::Null).await;
    let (status, code, _) = running.bad("GET", &place, &Value::Null).await;
    assert_eq!((status, code.as_str()), (404, "conversation_not_found"));
    let gone = loop {
        if let Some(Event::ConversationRemoved { id }) = told.next().await {
            break id;
        }
    };
    assert_eq!(gone, id);
}

#[tokio::test]
async fn messages_are_edited_deleted_and_taken_back() {
    let running = running();
    let messages: Vec<Value> = ["a", "b", "c", "d"]
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let role = ["user", "assistant"][index % 2];
            json!({"role": role, "content": text})
        })
        .collect();
    let made = running
        .good("POST", "/x/conversations", &json!({"messages": messages}))
        .await;
    let place = format!("/x/conversations/{}/messages", made["id"].as_str().unwrap());
    let message = |index: usize| {
        let id = made["messages"][index]["id"].as_str().unwrap();
        format!("{place}/{id}")
    };
    let texts = |conversation: &Value| -> Vec<String> {
        let messages = conversation["messages"].as_array().unwrap();
        messages
            .iter()
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    };
    let now = running
        .good("PATCH", &message(1), &json!({"content": "B"}))
        .await;
    assert_eq!(texts(&now), ["a", "B", "c", "d"]);
    let now = running
        .good(
            "POST",
            &format!("{}/truncate", message(2)),
            &json!({"inclusive": false}),
        )
        .await;
    assert_eq!(texts(&now), ["a", "B", "c"]);
    let now = running
        .good(
            "POST",
            &format!("{}/truncate", message(2)),
            &json!({"inclusive": true}),
        )
        .await;
    assert_eq!(texts(&now), ["a", "B"]);
    let now = running.good("DELETE", &message(0), &Value::Null).await;
    assert_eq!(texts(&now), ["B"]);
    for (method, place) in [
        ("DELETE", message(0)),
        ("DELETE", format!("{place}/nothing")),
    ] {
        let (status, code, _) = running.bad(method, &place, &Value::Null).await;
        assert_eq!((status, code.as_str()), (404, "message_not_found"));
    }
}

#[tokio::test]
async fn what_cannot_be_is_refused_by_name() {
    let running = running();
    let id = running.begin(&nothing()).await;
    let place = format!("/x/conversations/{id}");
    let before = running.file(&id);
    for (method, place, body, param) in [
        ("PATCH", &*place, json!({"tittle": "x"}), "tittle"),
        ("PATCH", &place, json!({"title": 3}), "title"),
        ("PATCH", &place, json!({"parameters": []}), "parameters"),
        (
            "PATCH",
            &place,
            json!({"parameters": {"minP": 2}}),
            "parameters.minP",
        ),
        (
            "PATCH",
            &place,
            json!({"parameters": {"ttlSeconds": 2}}),
            "parameters.ttlSeconds",
        ),
        (
            "PATCH",
            &place,
            json!({"title": "x", "parameters": {"x": 2}}),
            "parameters.x",
        ),
        (
            "POST",
            "/x/conversations",
            json!({"parameters": {"topP": -1}}),
            "parameters.topP",
        ),
        (
            "POST",
            "/x/conversations",
            json!({"messages": [{"role": "tool", "content": ""}]}),
            "messages[0].role",
        ),
        (
            "POST",
            "/x/conversations",
            json!({"messages": [{"role": "user", "content": "", "images": []}]}),
            "messages[0].images",
        ),
    ] {
        let (status, code, named) = running.bad(method, place, &body).await;
        assert_eq!((status, code.as_str()), (400, "invalid_request"), "{body}");
        assert_eq!(named.as_deref(), Some(param), "{body}");
    }
    assert_eq!(running.file(&id), before);
    let list = running.good("GET", "/x/conversations", &Value::Null).await;
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_damaged_file_is_told_and_left_as_it_is() {
    let running = running();
    running.begin(&nothing()).await;
    let id = "0B8A4F0C-6E3D-4C53-9A55-1D3C0D5C8F10";
    running.put_file(id, &json!("no conversation"));
    let list = running.good("GET", "/x/conversations", &Value::Null).await;
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1);
    assert!(list["damaged"][0]["path"].as_str().unwrap().contains(id));
    let place = format!("/x/conversations/{id}");
    let (status, code, _) = running.bad("PATCH", &place, &json!({"title": "x"})).await;
    assert_eq!((status, code.as_str()), (500, "conversation_unreadable"));
    assert_eq!(running.file(id), json!("no conversation"));
}
