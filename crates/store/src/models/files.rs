//! Downloads, deletions and copies for those who only know the contract.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, channel::mpsc, future::BoxFuture, stream, stream::BoxStream};
use macmlx_inference::{
    Backend, Download, DownloadState, InferenceError, ModelCard, ModelFiles, ModelFilesError,
    NewModel, PullProgress,
};

use super::{CopyError, Library, RemoveError};
use crate::{
    downloads::{Downloads, Failure, FileState, Job, State},
    hub::{self, Code},
};

/// The files of a library, the downloads that add to them and the backend that may hold them in
/// memory.
pub struct Files {
    library: Arc<Library>,
    downloads: Downloads,
    backend: Arc<dyn Backend>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Files")
            .field("library", &self.library)
            .field("downloads", &self.downloads)
            .finish_non_exhaustive()
    }
}

impl Files {
    /// `downloads` go to the library's folder.
    pub fn new(library: Arc<Library>, downloads: Downloads, backend: Arc<dyn Backend>) -> Self {
        Self {
            library,
            downloads,
            backend,
        }
    }
}

impl Files {
    /// Refuses a template that the backend cannot read.
    async fn check_template(&self, card: Arc<ModelCard>) -> Result<(), ModelFilesError> {
        match self.backend.traits(card).await {
            Ok(_) => Ok(()),
            Err(error) => Err(ModelFilesError::Model(InferenceError::InvalidRequest {
                param: Some("template".into()),
                message: format!("the template cannot be used: {error}"),
            })),
        }
    }
}

impl ModelFiles for Files {
    fn pull(
        &self,
        repository: String,
    ) -> BoxStream<'static, Result<PullProgress, ModelFilesError>> {
        let downloads = self.downloads.clone();
        let (sender, progress) = mpsc::unbounded();
        let pulling = async move {
            // Once the stream is dropped there is no receiver, and this future is dropped as well.
            let tell = |step| {
                let _ = sender.unbounded_send(step);
            };
            tell(Ok(PullProgress::Listing));
            let mut follow = match downloads.follow(&repository).await {
                Ok(follow) => follow,
                Err(hub::Error::Exists(id)) => return tell(Ok(PullProgress::Done { id })),
                Err(error) => return tell(Err(of_hub(&error))),
            };
            let mut teller = Teller::default();
            while let Some(job) = follow.next().await {
                for step in teller.steps(&job) {
                    tell(Ok(step));
                }
                match (job.state, &job.error) {
                    (State::Done, _) => return tell(Ok(PullProgress::Done { id: job.model })),
                    (State::Failed, Some(failure)) => return tell(Err(of_failure(failure))),
                    _ => {}
                }
            }
            tell(Err(stopped(&repository)));
        };
        // All steps come through the channel, so that they keep their order.
        let running = pulling
            .into_stream()
            .filter_map(|()| std::future::ready(None));
        stream::select(progress, running).boxed()
    }

    fn start_download(
        &self,
        repository: String,
    ) -> BoxFuture<'_, Result<Option<Download>, ModelFilesError>> {
        async move {
            let mut follow = match self.downloads.follow(&repository).await {
                Ok(follow) => follow,
                Err(hub::Error::Exists(_)) => return Ok(None),
                Err(error) => return Err(of_hub(&error)),
            };
            while let Some(job) = follow.next().await {
                if let (State::Failed, Some(failure)) = (job.state, &job.error) {
                    return Err(of_failure(failure));
                }
                if job.total_bytes.is_some() || job.state.is_at_rest() {
                    let kept = self.downloads.keep(job.id);
                    return Ok(Some(describe(&kept.unwrap_or(job))));
                }
            }
            Err(stopped(&repository))
        }
        .boxed()
    }

    fn download(&self, id: &str) -> Option<Download> {
        self.downloads.job(id.parse().ok()?).as_ref().map(describe)
    }

    fn delete(&self, reference: String) -> BoxFuture<'_, Result<String, ModelFilesError>> {
        async move {
            let library = self.library.clone();
            let entry = blocking(move || Ok(library.find_whole(&reference)?)).await?;
            if self
                .backend
                .loaded()
                .iter()
                .any(|model| model.id == entry.id)
            {
                self.backend.unload(entry.id.clone()).await?;
            }
            let library = self.library.clone();
            blocking(move || Ok(library.remove(&entry.id)?.id)).await
        }
        .boxed()
    }

    fn create(&self, model: NewModel) -> BoxFuture<'_, Result<(), ModelFilesError>> {
        async move {
            let has_template = model.template.is_some();
            let library = self.library.clone();
            let prepared = blocking(move || Ok(library.prepare(&model)?)).await?;
            let card = Arc::new(prepared.card().clone());
            if has_template {
                self.check_template(card.clone()).await?;
            }
            if self
                .backend
                .loaded()
                .iter()
                .any(|model| model.id == card.id)
            {
                self.backend.unload(card.id.clone()).await?;
            }
            let library = self.library.clone();
            blocking(move || Ok(library.put(&prepared)?)).await
        }
        .boxed()
    }

    fn copy(
        &self,
        source: String,
        destination: String,
    ) -> BoxFuture<'_, Result<(), ModelFilesError>> {
        let library = self.library.clone();
        blocking(move || Ok(library.copy(&source, &destination)?)).boxed()
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ModelFilesError> + Send + 'static,
) -> Result<T, ModelFilesError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(ModelFilesError::Disk(error.to_string())))
}

/// Turns what a download looks like into steps: what is new of each file.
#[derive(Debug, Default)]
struct Teller {
    told: HashMap<String, (u64, FileState)>,
}

impl Teller {
    fn steps(&mut self, job: &Job) -> Vec<PullProgress> {
        let is_checked = |state| matches!(state, FileState::Verifying | FileState::Done);
        let mut steps = Vec::new();
        for file in &job.files {
            let now = (file.done_bytes, file.state);
            let before = self.told.insert(file.path.clone(), now);
            if before == Some(now) {
                continue;
            }
            if before.is_none_or(|(done_bytes, _)| done_bytes != file.done_bytes) {
                steps.push(PullProgress::File {
                    path: file.path.clone(),
                    sha256: file.sha256.clone(),
                    total_bytes: file.size_bytes,
                    completed_bytes: file.done_bytes,
                });
            }
            if is_checked(file.state) && before.is_some_and(|(_, state)| !is_checked(state)) {
                steps.push(PullProgress::Verifying {
                    path: file.path.clone(),
                });
            }
        }
        steps
    }
}

fn stopped(repository: &str) -> ModelFilesError {
    let reason = format!("the download of `{repository}` was stopped; pull it again to go on");
    ModelFilesError::Hub(reason)
}

/// A job in the words of the contract.
fn describe(job: &Job) -> Download {
    let seconds = |time: jiff::Timestamp| u64::try_from(time.as_second()).unwrap_or_default();
    let eta = job.eta_seconds.map(Duration::try_from_secs_f64);
    Download {
        id: job.id.to_string(),
        state: match (job.state, &job.error) {
            (State::Done, _) => DownloadState::Done,
            (State::Paused, _) => DownloadState::Paused,
            (State::Failed, Some(failure)) => DownloadState::Failed(of_failure(failure)),
            (State::Failed, None) => DownloadState::Failed(stopped(&job.model)),
            (State::Queued | State::Listing | State::Downloading | State::Verifying, _) => {
                DownloadState::Running
            }
        },
        total_bytes: job.total_bytes,
        completed_bytes: job.done_bytes,
        bytes_per_second: job.bytes_per_second,
        remaining: eta.and_then(Result::ok),
        started_unix: seconds(job.created),
        updated_unix: seconds(job.updated),
    }
}

fn of_hub(error: &hub::Error) -> ModelFilesError {
    match error {
        hub::Error::Name(_) => ModelFilesError::Name(error.to_string()),
        hub::Error::Io { .. } => ModelFilesError::Disk(error.to_string()),
        _ => of_failure(&Failure::from(error)),
    }
}

fn of_failure(failure: &Failure) -> ModelFilesError {
    let message = failure.message.clone();
    match failure.code {
        Code::Gated | Code::Unauthorized | Code::NotFound | Code::NoWeights => {
            ModelFilesError::NotOnHub(message)
        }
        Code::DiskFull => ModelFilesError::Disk(message),
        Code::RateLimited
        | Code::Offline
        | Code::Corrupt
        | Code::Busy
        | Code::Exists
        | Code::Failed => ModelFilesError::Hub(message),
    }
}

impl From<RemoveError> for ModelFilesError {
    fn from(error: RemoveError) -> Self {
        match error {
            RemoveError::Resolve(error) => Self::Model(error),
            outside @ RemoveError::Outside { .. } => Self::Name(outside.to_string()),
            failed @ RemoveError::Io { .. } => Self::Disk(failed.to_string()),
        }
    }
}

impl From<CopyError> for ModelFilesError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Resolve(error) => Self::Model(error),
            wrong @ (CopyError::Name(_) | CopyError::Taken(_)) => Self::Name(wrong.to_string()),
            failed @ CopyError::Io { .. } => Self::Disk(failed.to_string()),
        }
    }
}
