//! `/x/logs`.

use axum::http::StatusCode;
use macmlx_store::logs::{Category, Level, NewEntry};
use serde_json::Map;

use crate::support::Running;

#[tokio::test]
async fn the_log_is_paged_narrowed_and_cleared() {
    let running = Running::new();
    for (level, message) in [
        (Level::Info, "one"),
        (Level::Error, "two"),
        (Level::Info, "three"),
    ] {
        running
            .logs
            .note(NewEntry::now(level, Category::Engine, message, Map::new()));
    }
    let page = running.get("/x/logs?limit=2").await;
    assert_eq!(page["has_more"], true);
    assert_eq!(page["entries"][1]["message"], "three");
    let before = page["entries"][0]["id"].to_string();
    let page = running.get(&format!("/x/logs?before={before}")).await;
    assert_eq!(page["entries"][0]["message"], "one");
    assert_eq!(page["has_more"], false);
    let page = running
        .get("/x/logs?level=warn&category=engine&search=TW")
        .await;
    assert_eq!(page["entries"].as_array().unwrap().len(), 1);
    for wrong in ["limit=0", "limit=1001", "level=loud", "category=x"] {
        let (status, _) = running.call("GET", &format!("/x/logs?{wrong}"), "").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    let (status, _) = running.call("DELETE", "/x/logs", "").await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let page = running.get("/x/logs").await;
    assert_eq!(page["entries"].as_array().unwrap().len(), 0);
}
