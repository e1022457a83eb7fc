//! `POST /api/v1/models/download` and `GET /api/v1/models/download/status/{id}`.

use macmlx_inference::{Download, DownloadState, rfc3339};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::{Failure, of_model_files};
use crate::{Error, json, words::refuse_others};

/// What is to be downloaded.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = lm_studio::DownloadRequest)]
pub struct DownloadRequest {
    /// A repository of Hugging Face, `OWNER/NAME`, or a link to one.
    pub model: String,
    /// Refused: a repository is one model.
    quantization: Option<String>,
}

impl DownloadRequest {
    /// Reads the body. Errors name the field.
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        let body = json::object(body)?;
        refuse_others(&body, &["model", "quantization"])?;
        let request: Self = json::fields(&body)?;
        if request.model.trim().is_empty() {
            return Err(Error::invalid("model", "model is empty; name a repository"));
        }
        if request.quantization.is_some() {
            return Err(Error::unsupported(
                "quantization",
                "a repository is one model here: name one with the quantization you want",
            ));
        }
        Ok(request)
    }
}

/// A download, or that there is none to do. Times are RFC 3339.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = lm_studio::DownloadJob)]
pub struct DownloadJob {
    /// Absent where the model was here already, as all fields below.
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
    /// `downloading`, `paused`, `completed`, `failed`; `already_downloaded` where a download was asked
    /// for.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    downloaded_bytes: Option<u64>,
    /// While it is `downloading`.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<f64>,
    /// While it is `downloading`, once the speed is steady enough to predict it.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_completion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    /// Once it is `completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    /// Why it `failed`, which LM Studio does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

impl DownloadJob {
    /// The answer where nothing is to be downloaded.
    pub fn already_downloaded() -> Self {
        Self {
            status: "already_downloaded",
            ..Self::default()
        }
    }

    /// A download as it is at `now_unix`, in seconds since the Unix epoch.
    pub fn new(download: Download, now_unix: u64) -> Self {
        let is_running = download.state == DownloadState::Running;
        let is_done = download.state == DownloadState::Done;
        let remaining = download.remaining.filter(|_| is_running);
        let completion = |seconds| rfc3339(now_unix.saturating_add(seconds));
        Self {
            job_id: Some(download.id),
            status: match download.state {
                DownloadState::Running => "downloading",
                DownloadState::Paused => "paused",
                DownloadState::Done => "completed",
                DownloadState::Failed(_) => "failed",
            },
            total_size_bytes: download.total_bytes,
            downloaded_bytes: Some(download.completed_bytes),
            bytes_per_second: is_running.then_some(download.bytes_per_second),
            estimated_completion: remaining.map(|remaining| completion(remaining.as_secs())),
            started_at: Some(rfc3339(download.started_unix)),
            completed_at: is_done.then(|| rfc3339(download.updated_unix)),
            error: match &download.state {
                DownloadState::Failed(error) => Some(of_model_files(error)),
                DownloadState::Running | DownloadState::Paused | DownloadState::Done => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use macmlx_inference::ModelFilesError;
    use serde_json::json;

    use super::*;

    fn download(state: DownloadState) -> Download {
        Download {
            id: "1-2".into(),
            state,
            total_bytes: Some(100),
            completed_bytes: 40,
            bytes_per_second: 2.0,
            remaining: Some(Duration::from_secs(30)),
            started_unix: 1_700_000_000,
            updated_unix: 1_700_000_020,
        }
    }

    #[test]
    fn a_job_tells_what_its_state_has() {
        for (state, status, rest) in [
            (
                DownloadState::Running,
                "downloading",
                json!({"bytes_per_second": 2.0, "estimated_completion": "2023-11-14T22:14:00Z"}),
            ),
            (DownloadState::Paused, "paused", json!({})),
            (
                DownloadState::Done,
                "completed",
                json!({"completed_at": "2023-11-14T22:13:40Z"}),
            ),
            (
                DownloadState::Failed(ModelFilesError::Disk("the disk is full".into())),
                "failed",
                json!({"error": {"type": "internal_error", "message": "the disk is full"}}),
            ),
        ] {
            let mut expected = json!({
                "job_id": "1-2",
                "status": status,
                "total_size_bytes": 100,
                "downloaded_bytes": 40,
                "started_at": "2023-11-14T22:13:20Z",
            });
            for (name, value) in rest.as_object().unwrap() {
                expected[name] = value.clone();
            }
            let job = DownloadJob::new(download(state), 1_700_000_010);
            assert_eq!(json::value(&job), expected);
        }
        assert_eq!(
            json::value(&DownloadJob::already_downloaded()),
            json!({"status": "already_downloaded"})
        );
    }

    #[test]
    fn bodies_are_read_and_what_cannot_be_honoured_is_refused_by_name() {
        let body = json!({"model": "org/small", "quantization": null});
        let request = DownloadRequest::parse(body.to_string().as_bytes()).unwrap();
        assert_eq!(request.model, "org/small");
        for (body, param) in [
            (json!({}), "model"),
            (json!({"model": " "}), "model"),
            (json!({"model": 5}), "model"),
            (
                json!({"model": "a", "quantization": "Q4_K_M"}),
                "quantization",
            ),
            (json!({"model": "a", "quantization": 4}), "quantization"),
            (json!({"model": "a", "revision": "main"}), "revision"),
        ] {
            let error = DownloadRequest::parse(body.to_string().as_bytes()).unwrap_err();
            assert!(error.to_string().contains(param), "{body}: {error}");
        }
    }
}
