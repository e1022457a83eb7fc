//! `/x/status` and `/x/shutdown`.

use axum::http::StatusCode;
use serde_json::Value;

use crate::support::Running;

#[tokio::test]
async fn status_has_the_fields_of_earlier_versions_and_of_this_one() {
    let running = Running::new();
    running.put_model("org/one", "llama");
    let status = running.get("/x/status").await;
    assert_eq!(status["status"], "idle");
    assert_eq!(status["loaded_model"], Value::Null);
    let number = |key: &str| status[key].as_f64().unwrap();
    assert!(number("memory_used_gb") > 0.0);
    assert!(number("memory_total_gb") > number("memory_used_gb"));
    assert!(number("memory_total_bytes") > number("memory_used_bytes"));
    assert!(number("models_disk_free_bytes") > 0.0);
    assert_eq!(status["requests_total"], 0);
    assert_eq!(status["tokens_generated_total"], 0);
    assert_eq!(status["local_models"], 1);
    assert_eq!(status["owner"], "gui");
    assert_eq!(status["door"]["state"], "closed");
    assert_eq!(status["throughput"]["running"], 0);
    assert_eq!(status["platform"]["os"], std::env::consts::OS);
    assert_eq!(status["home"], running.folder.path().to_str().unwrap());
}

#[tokio::test]
async fn shutdown_begins_at_once_and_says_so() {
    let running = Running::new();
    let (status, _) = running.call("POST", "/x/shutdown", "").await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert!(running.is_stopped());
}
