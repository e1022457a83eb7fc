//! The window is answered whether or not a port is open; the port opens and closes around that.

use std::{fs, time::Duration};

use axum::http::StatusCode;
use futures::StreamExt;
use macmlx_host::{DoorOptions, Owner, Presence, presence};
use macmlx_settings::Home;
use serde_json::{Value, json};

use crate::support::{Running, any_port, client};

#[tokio::test]
async fn the_window_is_answered_without_a_port_and_with_one() {
    let running = Running::start().await;
    let (status, body) = running.call("GET", "/x/status", "").await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert_eq!(body["door"]["state"], "closed");
    assert_eq!(body["owner"], "gui");
    let (status, _) = running.call("GET", "/v1/models", "").await;
    assert_eq!(status, StatusCode::OK);

    let first = running.open().await;
    assert_eq!(running.open().await.address, first.address, "it is open");
    let health = format!("{}/health", first.url());
    assert!(
        client()
            .get(&health)
            .send()
            .await
            .unwrap()
            .status()
            .is_success()
    );
    let (_, body) = running.call("GET", "/x/door", "").await;
    assert_eq!(body["state"], "open");
    assert_eq!(body["url"], first.url());

    running.app.close_door().await;
    assert!(client().get(&health).send().await.is_err());
    let (_, body) = running.call("GET", "/x/door", "").await;
    assert_eq!(body["state"], "closed");

    // The same port is free at once.
    let again = DoorOptions {
        port: Some(first.address.port()),
        ..DoorOptions::default()
    };
    running.app.open_door(again).await.unwrap();
    assert!(
        client()
            .get(&health)
            .send()
            .await
            .unwrap()
            .status()
            .is_success()
    );
    running.app.shut_down().await;
    assert!(client().get(&health).send().await.is_err());
    let (status, _) = running.call("GET", "/x/status", "").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_taken_port_is_said_and_another_one_is_taken_only_if_that_is_wanted() {
    let running = Running::start().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let patch = json!({"serverPort": port}).to_string();
    running.call("PATCH", "/x/settings", &patch).await;
    let (status, body) = running.call("POST", "/x/door/open", "{}").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(body["error"]["code"], "port_taken");
    let (_, door) = running.call("GET", "/x/door", "").await;
    assert_eq!(door["state"], "failed");
    assert_eq!(door["wanted_port"], port);
    assert!(door["error"].as_str().unwrap().contains(&port.to_string()));

    drop(taken);
    let (status, door) = running.call("POST", "/x/door/open", "{}").await;
    assert_eq!(status, StatusCode::OK, "{door}");
    assert_eq!(door["error"], Value::Null);
}

#[tokio::test]
async fn the_pid_file_says_when_the_door_is_open() {
    let running = Running::start().await;
    let home = Home::at(running.folder.path().join("data"));
    assert!(matches!(presence(&home), Presence::WithoutDoor(_)));
    let second = Running::start_in(running.folder.path(), Owner::Cli).await;
    let refusal = second.unwrap_err().to_string();
    assert!(refusal.contains("its server is off"), "{refusal}");

    let door = running.open().await;
    let record: Value = serde_json::from_slice(&fs::read(home.pid_file()).unwrap()).unwrap();
    assert_eq!(record["port"], door.address.port());
    assert_eq!(record["owner"], "gui");
    running.app.close_door().await;
    assert!(!home.pid_file().exists());
    running.app.shut_down().await;
    assert_eq!(presence(&home), Presence::Nobody);
    Running::start_in(running.folder.path(), Owner::Cli)
        .await
        .unwrap();
}

#[tokio::test]
async fn keys_that_are_made_or_set_count_from_the_next_request_on() {
    let running = Running::start().await;
    let door = running.open().await;
    let models = format!("{}/v1/models", door.url());
    let status = async |key: Option<&str>| {
        let mut request = client().get(&models);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(status(None).await, 200);
    let (_, made) = running.call("POST", "/x/keys", r#"{"name": "a"}"#).await;
    let key = made["key"].as_str().unwrap().to_owned();
    assert_eq!(status(None).await, 401);
    assert_eq!(status(Some(&key)).await, 200);
    let (_, listed) = running.call("GET", "/x/keys", "").await;
    assert!(listed["keys"][0]["last_used"].is_string());
    running
        .call("PATCH", "/x/settings", r#"{"serverAPIKey": "other"}"#)
        .await;
    assert_eq!(status(Some("other")).await, 200);

    // An open door that has asked for a key goes on asking; a new one need not.
    running.call("DELETE", "/x/keys/a", "").await;
    running
        .call("PATCH", "/x/settings", r#"{"serverAPIKey": null}"#)
        .await;
    assert_eq!(status(None).await, 401);
    assert_eq!(status(Some(&key)).await, 401);
    running.app.close_door().await;
    let again = DoorOptions {
        port: Some(door.address.port()),
        ..DoorOptions::default()
    };
    running.app.open_door(again).await.unwrap();
    assert_eq!(status(None).await, 200);
    // The window never needed one.
    let (status, _) = running.call("GET", "/v1/models", "").await;
    assert_eq!(status, StatusCode::OK);
    running.app.shut_down().await;
}

#[tokio::test]
async fn a_watcher_of_events_does_not_hold_the_door() {
    let running = Running::start().await;
    // If the watcher were waited for, this test would not end.
    let options = DoorOptions {
        grace: Some(Duration::from_hours(1)),
        ..any_port()
    };
    let door = running.app.open_door(options).await.unwrap();
    let response = client()
        .get(format!("{}/x/events", door.url()))
        .bearer_auth(running.app.control_token())
        .send()
        .await
        .unwrap();
    let mut events = response.bytes_stream();
    running
        .call("PATCH", "/x/settings", r#"{"theme": "dark"}"#)
        .await;
    let first = events.next().await.unwrap().unwrap();
    let first = String::from_utf8_lossy(&first).into_owned();
    assert!(first.contains("settings_changed"), "{first}");
    let ended =
        tokio::spawn(async move { while events.next().await.is_some_and(|e| e.is_ok()) {} });
    running.app.shut_down().await;
    ended.await.unwrap();
}

#[tokio::test]
async fn the_end_can_be_asked_for() {
    let running = Running::start().await;
    let stopping = running.app.stopping();
    let (status, _) = running.call("POST", "/x/shutdown", "").await;
    assert_eq!(status, StatusCode::ACCEPTED);
    stopping.await;
    running.app.shut_down().await;
    assert!(running.app.open_door(any_port()).await.is_err());
}
