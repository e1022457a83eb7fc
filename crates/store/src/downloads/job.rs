//! A download as people and programs see it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::hub::{Code, Error};

/// A download at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = DownloadJob)]
pub struct Job {
    #[schema(value_type = String)]
    pub id: Uuid,
    /// `owner/name`.
    pub model: String,
    /// The revision that was asked for; `None` is the main branch.
    #[schema(required)]
    pub revision: Option<String>,
    /// The commit that all files are of, once it is known.
    #[schema(required)]
    pub commit: Option<String>,
    pub state: State,
    #[schema(required)]
    pub total_bytes: Option<u64>,
    pub done_bytes: u64,
    pub bytes_per_second: f64,
    /// `None` until the speed is steady enough to predict the end.
    #[schema(required)]
    pub eta_seconds: Option<f64>,
    pub files: Vec<File>,
    #[schema(required)]
    pub error: Option<Failure>,
    #[schema(value_type = String, format = DateTime)]
    pub created: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated: Timestamp,
}

/// Where a download is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DownloadState)]
pub enum State {
    /// Waits for other downloads.
    Queued,
    /// Asks the hub for the files.
    Listing,
    Downloading,
    /// All bytes are here and are compared with the hub's digests.
    Verifying,
    Paused,
    Done,
    Failed,
}

impl State {
    /// Whether nothing happens until a person asks for it.
    pub fn is_at_rest(self) -> bool {
        match self {
            Self::Paused | Self::Done | Self::Failed => true,
            Self::Queued | Self::Listing | Self::Downloading | Self::Verifying => false,
        }
    }
}

/// A file of a download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DownloadFile)]
pub struct File {
    pub path: String,
    pub size_bytes: u64,
    pub done_bytes: u64,
    pub state: FileState,
    /// The digest in hexadecimal, where the hub says it.
    #[serde(skip)]
    pub sha256: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DownloadFileState)]
pub enum FileState {
    Waiting,
    Downloading,
    Verifying,
    Done,
}

/// Why a download ended early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DownloadError)]
pub struct Failure {
    pub code: Code,
    /// What to tell a person, with what can be done.
    pub message: String,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
        }
    }
}
