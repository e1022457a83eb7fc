//! A small stand-in for the Hugging Face Hub: one repository, ranges, and failures on demand.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, Method, Response, StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use futures::stream;
use serde_json::json;
use sha2::{Digest, Sha256};

/// A file of the repository.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// Kept in large file storage, under this digest.
    pub(crate) sha256: Option<String>,
}

impl File {
    pub(crate) fn small(name: &str, bytes: &[u8]) -> Self {
        Self {
            name: name.into(),
            bytes: bytes.into(),
            sha256: None,
        }
    }

    pub(crate) fn large(name: &str, bytes: Vec<u8>) -> Self {
        let mut digest = String::new();
        for byte in Sha256::digest(&bytes) {
            write!(digest, "{byte:02x}").unwrap();
        }
        Self {
            name: name.into(),
            sha256: Some(digest),
            bytes,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Gated,
    Unauthorized,
    NotFound,
    RateLimited,
}

struct Script {
    files: Vec<File>,
    commit: String,
    refusal: Option<Refusal>,
    /// Bytes after which the next connections for large files break.
    drops: Vec<usize>,
    ignores_ranges: bool,
    range_starts: Vec<usize>,
    authorization: Option<String>,
}

type Shared = Arc<Mutex<Script>>;

pub(crate) struct HubDouble {
    address: std::net::SocketAddr,
    script: Shared,
}

impl HubDouble {
    pub(crate) async fn start(files: Vec<File>) -> Self {
        let script = Arc::new(Mutex::new(Script {
            files,
            commit: "1111111111111111111111111111111111111111".into(),
            refusal: None,
            drops: Vec::new(),
            ignores_ranges: false,
            range_starts: Vec::new(),
            authorization: None,
        }));
        let router = Router::new()
            .route("/api/models/owner/model", get(info))
            .route("/api/models/owner/model/revision/{revision}", get(info))
            .route("/api/models/owner/model/tree/{revision}", get(tree))
            .route("/owner/model/resolve/{revision}/{file}", get(resolve))
            .with_state(script.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, script }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn refuse(&self, refusal: Option<Refusal>) {
        self.script.lock().unwrap().refusal = refusal;
    }

    pub(crate) fn drop_after(&self, bytes: &[usize]) {
        self.script.lock().unwrap().drops = bytes.iter().rev().copied().collect();
    }

    pub(crate) fn ignore_ranges(&self) {
        self.script.lock().unwrap().ignores_ranges = true;
    }

    pub(crate) fn set_commit(&self, commit: &str) {
        self.script.lock().unwrap().commit = commit.into();
    }

    /// First bytes that were asked for of large files, in order.
    pub(crate) fn range_starts(&self) -> Vec<usize> {
        self.script.lock().unwrap().range_starts.clone()
    }

    pub(crate) fn authorization(&self) -> Option<String> {
        self.script.lock().unwrap().authorization.clone()
    }
}

async fn info(State(script): State<Shared>, headers: HeaderMap) -> Response<Body> {
    let mut script = script.lock().unwrap();
    script.authorization = headers
        .get(header::AUTHORIZATION)
        .map(|value| value.to_str().unwrap().to_owned());
    let refused = |status: StatusCode, code: &'static str| {
        (status, [("x-error-code", code)], "").into_response()
    };
    match script.refusal {
        Some(Refusal::Gated) => refused(StatusCode::FORBIDDEN, "GatedRepo"),
        Some(Refusal::Unauthorized) => refused(StatusCode::UNAUTHORIZED, "RepoNotFound"),
        Some(Refusal::NotFound) => refused(StatusCode::NOT_FOUND, "RepoNotFound"),
        Some(Refusal::RateLimited) => (
            StatusCode::TOO_MANY_REQUESTS,
            [(header::RETRY_AFTER, "0")],
            "",
        )
            .into_response(),
        None => Json(json!({"id": "owner/model", "sha": script.commit})).into_response(),
    }
}

async fn tree(State(script): State<Shared>) -> Json<serde_json::Value> {
    let script = script.lock().unwrap();
    let entries = script.files.iter().map(|file| {
        let mut entry = json!({
            "type": "file", "path": file.name, "size": file.bytes.len(), "oid": "0"
        });
        if let Some(sha256) = &file.sha256 {
            entry["lfs"] = json!({"oid": sha256, "size": file.bytes.len(), "pointerSize": 134});
        }
        entry
    });
    Json(
        entries
            .chain([json!({"type": "directory", "path": "onnx", "oid": "0"})])
            .collect(),
    )
}

async fn resolve(
    State(script): State<Shared>,
    Path((_, name)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Response<Body> {
    let mut script = script.lock().unwrap();
    let Some(file) = script.files.iter().find(|file| file.name == name).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let range = headers
        .get(header::RANGE)
        .filter(|_| !script.ignores_ranges)
        .and_then(|value| value.to_str().ok()?.strip_prefix("bytes=")?.split_once('-'))
        .map(|(start, _)| start.parse::<usize>().unwrap());
    let start = range.unwrap_or(0);
    let mut pieces = vec![Ok(file.bytes[start..].to_vec())];
    if method == Method::GET && file.sha256.is_some() {
        script.range_starts.push(start);
        if let Some(drop) = script.drops.pop() {
            pieces = vec![
                Ok(file.bytes[start..(start + drop).min(file.bytes.len())].to_vec()),
                Err(std::io::Error::other("dropped")),
            ];
        }
    }
    let status = match range {
        Some(_) => StatusCode::PARTIAL_CONTENT,
        None => StatusCode::OK,
    };
    let body = if method == Method::HEAD {
        Body::empty()
    } else {
        // A pause lets the bytes ahead of a broken connection arrive.
        Body::from_stream(stream::unfold(pieces.into_iter(), |mut pieces| async {
            let piece = pieces.next()?;
            if piece.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            Some((piece, pieces))
        }))
    };
    Response::builder()
        .status(status)
        .header(header::CONTENT_LENGTH, file.bytes.len() - start)
        .header(
            header::ETAG,
            format!("\"{}\"", file.sha256.as_deref().unwrap_or("0")),
        )
        .header("x-repo-commit", &script.commit)
        .body(body)
        .unwrap()
}
