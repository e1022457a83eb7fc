//! Downloads, deletions and copies for those who only know the contract.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt, StreamExt, channel::mpsc, future::BoxFuture, stream, stream::BoxStream};
use macmlx_inference::{Backend, ModelFiles, ModelFilesError, PullProgress};

use super::{CopyError, Library, RemoveError};
use crate::hub::{self, Event, Hub, Request};

/// Progress within a file is told this often.
const INTERVAL: Duration = Duration::from_millis(100);

/// The files of a library, the hub they come from and the backend that may hold them in memory.
pub struct Files {
    library: Arc<Library>,
    /// `Err`: why there is none.
    hub: Result<Hub, String>,
    downloads: PathBuf,
    backend: Arc<dyn Backend>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Files")
            .field("library", &self.library)
            .field("hub", &self.hub)
            .finish_non_exhaustive()
    }
}

impl Files {
    /// `downloads` is where unfinished pulls are kept.
    pub fn new(
        library: Arc<Library>,
        hub: Result<Hub, hub::Error>,
        downloads: PathBuf,
        backend: Arc<dyn Backend>,
    ) -> Self {
        Self {
            library,
            hub: hub.map_err(|error| error.to_string()),
            downloads,
            backend,
        }
    }
}

impl ModelFiles for Files {
    fn pull(
        &self,
        repository: String,
    ) -> BoxStream<'static, Result<PullProgress, ModelFilesError>> {
        let hub = match &self.hub {
            Ok(hub) => hub.clone(),
            Err(reason) => {
                let error = ModelFilesError::Hub(reason.clone());
                return stream::iter([Err(error)]).boxed();
            }
        };
        let request = Request {
            reference: repository,
            models: self.library.root().to_path_buf(),
            downloads: self.downloads.clone(),
        };
        let (sender, progress) = mpsc::unbounded();
        let pulling = async move {
            // Nobody listens once the stream is dropped, and then this future is dropped, too.
            let tell = |step| {
                let _ = sender.unbounded_send(step);
            };
            tell(Ok(PullProgress::Listing));
            let mut teller = Teller::default();
            let pulled = hub::pull(&hub, &request, &mut |event| {
                if let Some(step) = teller.progress(event) {
                    tell(Ok(step));
                }
            })
            .await;
            tell(match pulled {
                Ok(pulled) => Ok(PullProgress::Done { id: pulled.id }),
                Err(hub::Error::Exists(id)) => Ok(PullProgress::Done { id }),
                Err(error) => Err(of_hub(&error)),
            });
        };
        // All steps come through the channel, so that they keep their order.
        let running = pulling
            .into_stream()
            .filter_map(|()| std::future::ready(None));
        stream::select(progress, running).boxed()
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

/// Turns what a pull reports into steps, each file by itself.
#[derive(Debug, Default)]
struct Teller {
    path: String,
    sha256: Option<String>,
    total_bytes: u64,
    /// Of this file when its turn came, and of all files then.
    present_bytes: u64,
    done_before: u64,
    done_bytes: u64,
    told: Option<Instant>,
}

impl Teller {
    fn progress(&mut self, event: Event) -> Option<PullProgress> {
        match event {
            Event::Started { resumed_bytes, .. } => {
                self.done_bytes = resumed_bytes;
                None
            }
            Event::File {
                path,
                size_bytes,
                present_bytes,
                sha256,
                ..
            } => {
                *self = Self {
                    path,
                    sha256,
                    total_bytes: size_bytes,
                    present_bytes,
                    done_before: self.done_bytes,
                    done_bytes: self.done_bytes,
                    told: Some(Instant::now()),
                };
                Some(self.step())
            }
            Event::Progress { done_bytes } => {
                self.done_bytes = done_bytes;
                let step = self.step();
                let is_due = self.told.is_none_or(|told| told.elapsed() >= INTERVAL);
                let is_whole = matches!(
                    &step,
                    PullProgress::File { total_bytes, completed_bytes, .. } if total_bytes == completed_bytes
                );
                (is_due || is_whole).then(|| {
                    self.told = Some(Instant::now());
                    step
                })
            }
            Event::Verifying { path } => Some(PullProgress::Verifying { path }),
        }
    }

    fn step(&self) -> PullProgress {
        // Bytes that could not be used are taken off again.
        let completed = (self.present_bytes + self.done_bytes).saturating_sub(self.done_before);
        PullProgress::File {
            path: self.path.clone(),
            sha256: self.sha256.clone(),
            total_bytes: self.total_bytes,
            completed_bytes: completed.min(self.total_bytes),
        }
    }
}

fn of_hub(error: &hub::Error) -> ModelFilesError {
    let message = error.to_string();
    match error {
        hub::Error::Name(_) => ModelFilesError::Name(message),
        hub::Error::Gated { .. }
        | hub::Error::NotVisible { .. }
        | hub::Error::Token { .. }
        | hub::Error::NotFound(_)
        | hub::Error::Revision { .. }
        | hub::Error::NoWeights { .. } => ModelFilesError::NotOnHub(message),
        hub::Error::Endpoint { .. }
        | hub::Error::RateLimited { .. }
        | hub::Error::Offline { .. }
        | hub::Error::Corrupt { .. }
        | hub::Error::Exists(_)
        | hub::Error::Busy(_)
        | hub::Error::Unexpected(_) => ModelFilesError::Hub(message),
        hub::Error::DiskFull { .. } | hub::Error::Io { .. } => ModelFilesError::Disk(message),
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
