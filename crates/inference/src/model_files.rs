//! Changing which models are on this machine, without knowing where they come from or are kept.

use std::time::Duration;

use futures::{future::BoxFuture, stream::BoxStream};

use crate::{InferenceError, NewModel};

/// The files of local models. Implemented by the store.
pub trait ModelFiles: Send + Sync + 'static {
    /// Downloads a repository, `OWNER/NAME` with `@REVISION` if need be. Ends after
    /// [`PullProgress::Done`] or the first error. Dropping the stream ends the download; what is
    /// here by then is used by the next one.
    fn pull(&self, repository: String)
    -> BoxStream<'static, Result<PullProgress, ModelFilesError>>;

    /// Begins a download that goes on by itself, or goes on with one, and returns it once its size is
    /// known. `None`: the model is here. Dropping the future before stops it as that of
    /// [`Self::pull`].
    fn start_download(
        &self,
        repository: String,
    ) -> BoxFuture<'_, Result<Option<Download>, ModelFilesError>>;

    /// The download with this id, whoever began it; `None` if there is none, or no more.
    fn download(&self, id: &str) -> Option<Download>;

    /// Unloads a model and deletes its files; returns its id. The reference must be a whole name:
    /// the beginning of one is not enough to delete by.
    fn delete(&self, reference: String) -> BoxFuture<'_, Result<String, ModelFilesError>>;

    /// Makes a model of another, or makes one anew that was made so. Weights take no more disk, and
    /// stay when the other model is deleted.
    fn create(&self, model: NewModel) -> BoxFuture<'_, Result<(), ModelFilesError>>;

    /// Gives a model a second name, which stays when the first is deleted.
    fn copy(
        &self,
        source: String,
        destination: String,
    ) -> BoxFuture<'_, Result<(), ModelFilesError>>;
}

/// A download at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Download {
    pub id: String,
    pub state: DownloadState,
    /// `None` until the list of files is known.
    pub total_bytes: Option<u64>,
    pub completed_bytes: u64,
    pub bytes_per_second: f64,
    /// Time until the end; `None` until the speed is steady enough to predict it.
    pub remaining: Option<Duration>,
    /// Seconds since the Unix epoch.
    pub started_unix: u64,
    /// When it came to its state or told of progress last, seconds since the Unix epoch.
    pub updated_unix: u64,
}

/// Where a download is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadState {
    /// It is under way, or waits for its turn.
    Running,
    /// It goes on when it is asked for again.
    Paused,
    /// The model can be used.
    Done,
    Failed(ModelFilesError),
}

/// A step of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullProgress {
    /// The list of files is being fetched.
    Listing,
    /// Bytes of a file that are here.
    File {
        path: String,
        /// SHA-256 in hexadecimal, where the hub says it.
        sha256: Option<String>,
        total_bytes: u64,
        completed_bytes: u64,
    },
    /// A file is compared with the hub's digest.
    Verifying { path: String },
    /// The model can be used under this id.
    Done { id: String },
}

/// Why a model's files were not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelFilesError {
    #[error(transparent)]
    Model(#[from] InferenceError),
    /// A name that cannot be used.
    #[error("{0}")]
    Name(String),
    /// The hub has no such thing, or shows it to others only.
    #[error("{0}")]
    NotOnHub(String),
    /// The hub cannot be reached or does not answer as it should.
    #[error("{0}")]
    Hub(String),
    /// This machine's disk is full or refuses.
    #[error("{0}")]
    Disk(String),
}
