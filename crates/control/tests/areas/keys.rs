//! `/x/keys`.

use axum::http::StatusCode;
use futures::StreamExt;
use macmlx_control::events::Event;

use crate::support::Running;

#[tokio::test]
async fn a_key_is_made_listed_and_made_useless() {
    let running = Running::new();
    let mut told = Box::pin(running.events.subscribe());
    let (status, made) = running
        .call("POST", "/x/keys", r#"{"name": "my laptop"}"#)
        .await;
    assert_eq!(status, StatusCode::CREATED);
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("sk-macmlx-"));
    assert!(matches!(told.next().await, Some(Event::KeysChanged)));

    let listed = running.get("/x/keys").await;
    let row = &listed["keys"][0];
    assert_eq!(row["name"], "my laptop");
    assert!(row["last_used"].is_null());
    assert!(key.ends_with(row["hint"].as_str().unwrap().rsplit('…').next().unwrap()));
    assert!(!listed.to_string().contains(key));
    let sha256 = running.keys.list().unwrap()[0].sha256;
    running.keys.note_use(&sha256);
    let listed = running.get("/x/keys").await;
    assert!(listed["keys"][0]["last_used"].is_string());

    let (status, body) = running
        .call("POST", "/x/keys", r#"{"name": "my laptop"}"#)
        .await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(body["error"]["code"], "exists");
    let (status, body) = running.call("POST", "/x/keys", r#"{"name": ""}"#).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(body["error"]["param"], "name");

    let path = "/x/keys/my%20laptop";
    let (status, _) = running.call("DELETE", path, "").await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, body) = running.call("DELETE", path, "").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(body["error"]["code"], "key_not_found");
}
