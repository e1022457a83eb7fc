//! A download that a client begins is one of the owner's downloads.

use axum::http::StatusCode;
use macmlx_host::Owner;
use macmlx_test_support::hub_double::{Behaviour, File, HubDouble, Repository};
use serde_json::{Value, json};

use crate::support::Running;

const MODEL: &str = "owner/model";

fn repository() -> Repository {
    let header = r#"{"w.weight":{"dtype":"U8","shape":[800000],"data_offsets":[0,800000]}}"#;
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.bytes());
    weights.extend((0..800_000).map(|i| (i % 251) as u8));
    Repository::new(
        MODEL,
        [
            ("config.json", File::small(r#"{"model_type": "llama"}"#)),
            ("tokenizer.json", File::small("{}")),
            ("model.safetensors", File::large(weights)),
        ],
    )
}

async fn begin(running: &Running) -> Value {
    let body = json!({"model": MODEL}).to_string();
    let (status, begun) = running.call("POST", "/api/v1/models/download", &body).await;
    assert_eq!(status, StatusCode::OK, "{begun}");
    begun
}

#[tokio::test]
async fn lm_studios_downloads_are_rows_that_the_owner_pauses_and_shutdown_ends() {
    let double = HubDouble::start([repository()]).await;
    double.behave(Behaviour {
        bytes_per_second: Some(100_000),
        ..Behaviour::default()
    });
    let mut running = Running::start().await;
    let settings = json!({"hfEndpoint": double.url()}).to_string();
    let (status, told) = running.call("PATCH", "/x/settings", &settings).await;
    assert_eq!(status, StatusCode::OK, "{told}");
    let begun = begin(&running).await;
    assert_eq!(begun["status"], "downloading");
    assert!(begun["total_size_bytes"].as_u64().unwrap() > 800_000);
    let id = begun["job_id"].as_str().unwrap();
    let (_, rows) = running.call("GET", "/x/downloads", "").await;
    assert_eq!(rows["jobs"][0]["id"], id, "{rows}");
    assert_eq!(rows["jobs"][0]["total_bytes"], begun["total_size_bytes"]);
    let pause = format!("/x/downloads/{id}/pause");
    let (status, paused) = running.call("POST", &pause, "").await;
    assert_eq!(status, StatusCode::OK, "{paused}");
    let look = format!("/api/v1/models/download/status/{id}");
    let (_, job) = running.call("GET", &look, "").await;
    assert_eq!(job["status"], "paused", "{job}");
    let again = begin(&running).await;
    assert_eq!(
        (&again["job_id"], &again["status"]),
        (&json!(id), &json!("downloading"))
    );
    running.app.shut_down().await;
    // The next process goes on with it.
    double.behave(Behaviour::default());
    let app = Running::start_in(running.folder.path(), Owner::Gui).await;
    running.app = app.unwrap();
    loop {
        let (status, job) = running.call("GET", &look, "").await;
        if status == StatusCode::OK && job["status"] == "completed" {
            assert_eq!(job["downloaded_bytes"], job["total_size_bytes"]);
            assert!(job["completed_at"].is_string(), "{job}");
            break;
        }
        assert_ne!(job["status"], "failed", "{job}");
        tokio::task::yield_now().await;
    }
    let body = json!({"model": MODEL}).to_string();
    let (_, here) = running.call("POST", "/api/v1/models/download", &body).await;
    assert_eq!(here, json!({"status": "already_downloaded"}));
}
