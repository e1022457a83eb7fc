//! `/x/settings`.

use std::fs;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::Running;

#[tokio::test]
async fn settings_are_shown_without_secrets() {
    let running = Running::new();
    let text = r#"{"serverAPIKey": "geheim", "serverPort": 9000, "theirs": 1, "theme": "pink"}"#;
    fs::write(running.home.settings_file(), text).unwrap();
    let shown = running.get("/x/settings").await;
    assert_eq!(shown["settings"]["serverPort"], 9000);
    assert_eq!(shown["settings"]["hasServerAPIKey"], true);
    assert_eq!(shown["defaults"]["serverPort"], 8000);
    assert_eq!(shown["settings"]["theme"], "system");
    assert!(shown["warnings"][0].as_str().unwrap().contains("theme"));
    assert!(!shown.to_string().contains("geheim"));
    // Looking changes nothing.
    assert_eq!(
        fs::read_to_string(running.home.settings_file()).unwrap(),
        text
    );
}

#[tokio::test]
async fn a_patch_counts_at_once_or_names_what_needs_a_restart() {
    let running = Running::new();
    let patch = r#"{"theme": "dark", "maxBatchSize": 2, "serverAPIKey": "k"}"#;
    let (status, shown) = running.call("PATCH", "/x/settings", patch).await;
    assert_eq!(status, StatusCode::OK, "{shown}");
    assert_eq!(shown["settings"]["theme"], "dark");
    assert_eq!(shown["settings"]["hasServerAPIKey"], true);
    assert_eq!(shown["restart_required"], json!(["maxBatchSize"]));
    let (_, shown) = running
        .call("PATCH", "/x/settings", r#"{"maxBatchSize": null}"#)
        .await;
    assert_eq!(shown["restart_required"], json!([]));
    assert_eq!(shown["settings"]["maxBatchSize"], 32);
}

#[tokio::test]
async fn what_cannot_be_honoured_is_named_and_changes_nothing() {
    let running = Running::new();
    for (patch, param) in [
        (r#"{"theme": "pink"}"#, json!("theme")),
        (r#"{"serverPort": 70000}"#, json!("serverPort")),
        (r#"{"kvBits": 5}"#, json!("kvBits")),
        (r#"{"colour": 1}"#, json!("colour")),
        (r#"{"serverPort": 1, "nope": null}"#, json!("nope")),
        ("[]", Value::Null),
    ] {
        let (status, body) = running.call("PATCH", "/x/settings", patch).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{patch}");
        assert_eq!(body["error"]["param"], param, "{patch}");
    }
    assert!(!running.home.settings_file().exists());
    fs::write(running.home.settings_file(), "{").unwrap();
    let (status, _) = running
        .call("PATCH", "/x/settings", r#"{"theme": "dark"}"#)
        .await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(
        fs::read_to_string(running.home.settings_file()).unwrap(),
        "{"
    );
}

#[tokio::test]
async fn the_hubs_token_is_kept_and_never_shown() {
    let running = Running::new();
    let token = r#"{"token": "hf_geheim"}"#;
    let (status, _) = running.call("PUT", "/x/settings/hf-token", token).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let shown = running.get("/x/settings").await;
    assert_eq!(shown["has_hf_token"], true);
    assert!(!shown.to_string().contains("hf_geheim"));
    let (status, _) = running
        .call("PUT", "/x/settings/hf-token", r#"{"token": "a b"}"#)
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, _) = running.call("DELETE", "/x/settings/hf-token", "").await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(running.get("/x/settings").await["has_hf_token"], false);
}

#[test]
fn the_document_has_every_setting_as_it_is_shown() {
    let document = serde_json::to_value(macmlx_control::document()).unwrap();
    let schemas = &document["components"]["schemas"];
    let settings = &schemas["Settings"];
    let required: Vec<&str> = settings["required"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key.as_str().unwrap())
        .collect();
    let shown = serde_json::to_value(macmlx_settings::Settings::default()).unwrap();
    for key in shown.as_object().unwrap().keys() {
        assert!(required.contains(&key.as_str()), "{key}");
        assert!(schemas["SettingsPatch"]["properties"][key].is_object());
    }
    assert!(required.contains(&"hasServerAPIKey"));
    assert!(settings["properties"]["serverAPIKey"].is_null());
    assert!(schemas["SettingsPatch"]["properties"]["serverAPIKey"].is_object());
    assert!(schemas["Theme"]["enum"].is_array());
}
