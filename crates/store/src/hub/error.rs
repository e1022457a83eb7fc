//! Why the hub or a download failed, and what to do about it.

use std::{io, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

/// Errors of the hub and of downloads. What was downloaded so far is kept for the next attempt.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is not a repository; use OWNER/NAME, with @REVISION if need be")]
    Name(String),
    #[error(
        "cannot use the hub at {endpoint}: {reason}; check HF_ENDPOINT or the setting hfEndpoint"
    )]
    Endpoint { endpoint: String, reason: String },
    #[error(
        "`{repo}` needs you to accept its licence on {endpoint}/{repo}, then set a Hugging Face token of that account (in the settings, or HF_TOKEN)"
    )]
    Gated { repo: String, endpoint: String },
    #[error(
        "`{repo}` does not exist, is private or gated: check the name, or set a Hugging Face token that may read it (in the settings, or HF_TOKEN)"
    )]
    NotVisible { repo: String },
    #[error(
        "the hub does not accept this token for `{repo}`; make a new one at {endpoint}/settings/tokens and set it (in the settings, or HF_TOKEN)"
    )]
    Token { repo: String, endpoint: String },
    #[error("`{0}` is not on the hub; check the name")]
    NotFound(String),
    #[error("`{repo}` has no revision `{revision}`; leave it out for the newest")]
    Revision { repo: String, revision: String },
    #[error(
        "the hub asks to slow down; try again {}{}",
        retry_after.map_or_else(|| "in a few minutes".to_owned(), |wait| format!("in {} s", wait.as_secs())),
        if *has_token { "" } else { ", or set a Hugging Face token for higher limits" }
    )]
    RateLimited {
        retry_after: Option<Duration>,
        has_token: bool,
    },
    #[error(
        "cannot reach {endpoint}: {reason}; check the network, then try again to go on where it stopped"
    )]
    Offline { endpoint: String, reason: String },
    #[error("`{repo}` has no weights macMLX can use (safetensors); {hint}")]
    NoWeights { repo: String, hint: &'static str },
    #[error("{needed_bytes} bytes are needed but {available_bytes} are free on the disk of {}; free some space, then try again to go on where it stopped", path.display())]
    NoSpace {
        path: PathBuf,
        needed_bytes: u64,
        available_bytes: u64,
    },
    #[error("the disk of {} is full; free some space, then try again to go on where it stopped", path.display())]
    DiskFull { path: PathBuf },
    #[error(
        "`{file}` did not arrive as the hub has it, twice; the network or a mirror changes files, try another network or endpoint"
    )]
    Corrupt { file: String },
    #[error("`{0}` is on this machine already; remove it first to download it anew")]
    Exists(String),
    #[error("another process is downloading `{0}`; wait for it, or stop it there")]
    Busy(String),
    #[error(
        "`{repo}` is being downloaded at {}; cancel that first", current.as_deref().unwrap_or("its main revision")
    )]
    OtherRevision {
        repo: String,
        current: Option<String>,
    },
    #[error("cannot access {}: {reason}", path.display())]
    Io { path: PathBuf, reason: String },
    #[error("the hub answered something unexpected: {0}")]
    Unexpected(String),
}

/// The kind of an error, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DownloadErrorCode)]
pub enum Code {
    Gated,
    Unauthorized,
    NotFound,
    RateLimited,
    Offline,
    DiskFull,
    Corrupt,
    NoWeights,
    Busy,
    Exists,
    Failed,
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Io {
                path,
                reason: source.to_string(),
            },
        }
    }

    pub fn code(&self) -> Code {
        match self {
            Self::Gated { .. } => Code::Gated,
            Self::NotVisible { .. } | Self::Token { .. } => Code::Unauthorized,
            Self::NotFound(_) | Self::Revision { .. } => Code::NotFound,
            Self::RateLimited { .. } => Code::RateLimited,
            Self::Offline { .. } => Code::Offline,
            Self::NoWeights { .. } => Code::NoWeights,
            Self::NoSpace { .. } | Self::DiskFull { .. } => Code::DiskFull,
            Self::Corrupt { .. } => Code::Corrupt,
            Self::Exists(_) => Code::Exists,
            Self::Busy(_) | Self::OtherRevision { .. } => Code::Busy,
            Self::Name(_) | Self::Endpoint { .. } | Self::Io { .. } | Self::Unexpected(_) => {
                Code::Failed
            }
        }
    }
}
