//! Waiting for a download, which stops when no follower waits and it was not started to be kept.

use tokio::{runtime::Handle, sync::broadcast};
use uuid::Uuid;

use super::{Change, Downloads, Job};

/// A follower that waits for a download. Dropping it pauses a download that only it wanted.
#[derive(Debug)]
pub struct Follow {
    downloads: Option<Downloads>,
    runtime: Handle,
    id: Uuid,
    changes: broadcast::Receiver<Change>,
    /// What to tell first.
    first: Option<Job>,
    is_over: bool,
}

impl Follow {
    pub(super) fn new(
        downloads: Downloads,
        id: Uuid,
        changes: broadcast::Receiver<Change>,
        first: Job,
    ) -> Self {
        Self {
            downloads: Some(downloads),
            runtime: Handle::current(),
            id,
            changes,
            first: Some(first),
            is_over: false,
        }
    }

    /// The download as it is now, then each time it changes; the last one is at rest. `None` at
    /// once if it is cancelled.
    pub async fn next(&mut self) -> Option<Job> {
        if self.is_over {
            return None;
        }
        let job = match self.first.take() {
            Some(job) => Some(job),
            None => self.change().await,
        };
        self.is_over = job.as_ref().is_none_or(|job| job.state.is_at_rest());
        job
    }

    async fn change(&mut self) -> Option<Job> {
        loop {
            match self.changes.recv().await {
                Ok(Change::Job(job)) if job.id == self.id => return Some(*job),
                Ok(Change::Removed(id)) if id == self.id => return None,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    return self.downloads.as_ref()?.job(self.id);
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// Stops following as dropping does, but what was downloaded is on the disk when this returns.
    pub async fn stop(mut self) {
        if let Some(downloads) = self.downloads.take() {
            downloads.release(self.id).await;
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        if let Some(downloads) = self.downloads.take() {
            let id = self.id;
            self.runtime
                .spawn(async move { downloads.release(id).await });
        }
    }
}
