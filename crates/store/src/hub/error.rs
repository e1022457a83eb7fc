//! Why a download failed, and what to do about it.

use std::{io, path::PathBuf, time::Duration};

use hf_hub::HFError;

/// Errors of a pull. What was downloaded so far is kept for the next attempt.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is not a repository; use OWNER/NAME, with @REVISION if need be")]
    Name(String),
    #[error(
        "cannot use the hub at {endpoint}: {reason}; check HF_ENDPOINT or the setting hfEndpoint"
    )]
    Endpoint { endpoint: String, reason: String },
    #[error(
        "`{repo}` needs you to accept its licence on {endpoint}/{repo}, then set HF_TOKEN to a token of that account"
    )]
    Gated { repo: String, endpoint: String },
    #[error(
        "`{repo}` does not exist, is private or gated: check the name, or set HF_TOKEN to a token that may read it"
    )]
    NotVisible { repo: String },
    #[error(
        "the hub does not accept this token for `{repo}`; make a new one at {endpoint}/settings/tokens and set HF_TOKEN"
    )]
    Token { repo: String, endpoint: String },
    #[error("`{0}` is not on the hub; check the name")]
    NotFound(String),
    #[error("`{repo}` has no revision `{revision}`")]
    Revision { repo: String, revision: String },
    #[error(
        "the hub asks to slow down; try again {}{}",
        retry_after.map_or_else(|| "in a few minutes".to_owned(), |wait| format!("in {} s", wait.as_secs())),
        if *has_token { "" } else { ", or set HF_TOKEN for higher limits" }
    )]
    RateLimited {
        retry_after: Option<Duration>,
        has_token: bool,
    },
    #[error(
        "cannot reach {endpoint}: {reason}; check the network, then pull again to go on where it stopped"
    )]
    Offline { endpoint: String, reason: String },
    #[error("`{repo}` has no weights macMLX can use (safetensors); {hint}")]
    NoWeights { repo: String, hint: &'static str },
    #[error("{needed_bytes} bytes are needed but {available_bytes} are free on the disk of {}; free some space, then pull again", path.display())]
    DiskFull {
        path: PathBuf,
        needed_bytes: u64,
        available_bytes: u64,
    },
    #[error(
        "`{file}` did not arrive as the hub has it, twice; the network or a mirror changes files"
    )]
    Corrupt { file: String },
    #[error("`{0}` is on this machine already; remove it first to download it anew")]
    Exists(String),
    #[error("another process is downloading `{0}`")]
    Busy(String),
    #[error("cannot access {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the hub answered something unexpected: {0}")]
    Unexpected(String),
}

impl Error {
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull {
                path,
                needed_bytes: 1,
                available_bytes: 0,
            },
            _ => Self::Io { path, source },
        }
    }
}

/// What a failed request means. `None`: the connection was lost and trying again may help.
pub(super) fn translate(error: &HFError, repo: &str, hub: &super::Hub) -> Option<Error> {
    let repo = repo.to_owned();
    let endpoint = hub.endpoint.clone();
    let is_gated = |code: Option<&str>, message: Option<&str>| {
        code == Some("GatedRepo")
            || message
                .is_some_and(|message| message.contains("gated") || message.contains("restricted"))
    };
    Some(match error {
        HFError::AuthRequired { context } | HFError::Forbidden { context }
            if is_gated(
                context.error_code.as_deref(),
                context.server_message.as_deref(),
            ) =>
        {
            Error::Gated { repo, endpoint }
        }
        HFError::AuthRequired { .. } if !hub.has_token => Error::NotVisible { repo },
        HFError::AuthRequired { .. } | HFError::Forbidden { .. } => Error::Token { repo, endpoint },
        HFError::RepoNotFound { .. } => Error::NotFound(repo),
        HFError::RevisionNotFound { revision, .. } => Error::Revision {
            repo,
            revision: revision.clone(),
        },
        HFError::EntryNotFound { path, .. } => Error::NotFound(format!("{repo}/{path}")),
        HFError::RateLimited { retry_after, .. } => Error::RateLimited {
            retry_after: *retry_after,
            has_token: hub.has_token,
        },
        HFError::Request { .. } | HFError::Xet { .. } => return None,
        HFError::Http { context } if context.status.is_server_error() => return None,
        other => Error::Unexpected(other.to_string()),
    })
}

/// A lost connection in words, with the cause that names it.
pub(super) fn offline(error: &dyn std::error::Error, hub: &super::Hub) -> Error {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    Error::Offline {
        endpoint: hub.endpoint.clone(),
        reason: cause.to_string(),
    }
}
