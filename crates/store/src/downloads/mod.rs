//! Downloads of models: a queue that app, server and command line share.
//!
//! A download is a folder below `downloads/` with its record, a journal of the bytes that are on
//! the disk for certain, and the files. Invariants:
//! - a process that works on a folder holds its lock;
//! - all files are of the commit in the record, checked by their digests as they are finished;
//! - what the journal says is on the disk: bytes are synced before they are told of;
//! - the model's folder appears whole or not at all.
//!
//! After a crash downloads come back paused; [`Downloads::resume_interrupted`] goes on with those
//! that were under way. The newest of the finished ones are remembered until the process ends.

mod digest;
mod entry;
mod folder;
mod follow;
mod job;
mod options;
mod place;
mod progress;
mod ranges;
mod record;
mod run;
mod shared;
mod space;
mod speed;
mod start;
mod stream;
mod transfer;

use std::{fmt, path::PathBuf, sync::Arc};

use tokio::sync::broadcast;
use uuid::Uuid;

pub use follow::Follow;
pub use job::{Failure, File, FileState, Job, State};
pub use options::{Options, Places, WriteAt};

use self::{
    entry::{Entry, Running},
    folder::Folder,
    shared::Shared,
    transfer::blocking,
};
use crate::hub::{Connection, Error};

/// The downloads of this process. Copies are the same downloads.
#[derive(Clone)]
pub struct Downloads(Arc<Shared>);

impl fmt::Debug for Downloads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Downloads")
            .field("places", &self.0.places)
            .finish_non_exhaustive()
    }
}

/// What happens to downloads.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A download is new or has changed.
    Job(Box<Job>),
    /// It is in the list no more.
    Removed(Uuid),
}

/// Why a command was not carried out.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError {
    #[error("there is no download {0}")]
    Unknown(Uuid),
    #[error("the download of `{model}` is {}; {hint}", word(*state))]
    State {
        model: String,
        state: State,
        hint: &'static str,
    },
    #[error(transparent)]
    Hub(#[from] Error),
}

fn word(state: State) -> &'static str {
    match state {
        State::Queued => "queued",
        State::Listing => "listing its files",
        State::Downloading => "downloading",
        State::Verifying => "verifying",
        State::Paused => "paused",
        State::Done => "done",
        State::Failed => "failed",
    }
}

/// A download that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    pub job: Job,
    /// It was not in the list before.
    pub is_new: bool,
}

impl Downloads {
    /// Finds the downloads that earlier processes left. Blocks; starts nothing.
    pub fn open(places: Places, connection: Arc<Connection>, options: Options) -> Self {
        let shared = Shared::new(places, connection, options);
        match Folder::all(&shared.places.downloads) {
            Ok(folders) => {
                for folder in folders {
                    match shared.find(&folder) {
                        Ok(Some(entry)) => shared.insert(entry),
                        Ok(None) => {}
                        Err(error) => tracing::warn!(%error, "cannot read a download"),
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "cannot read the downloads"),
        }
        Self(Arc::new(shared))
    }

    /// All downloads, oldest first.
    pub fn list(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = self.0.jobs().values().map(Entry::job).collect();
        jobs.sort_by_key(|job| (job.created, job.id));
        jobs
    }

    pub fn job(&self, id: Uuid) -> Option<Job> {
        self.0.read(id, Entry::job)
    }

    /// Hears of each change from now on. Who lags behind should ask for the list.
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.0.subscribe()
    }

    /// Where a model, `owner/name`, is once it is downloaded.
    pub fn destination(&self, model: &str) -> PathBuf {
        self.0.destination(model)
    }

    /// Downloads a model, going on with what is here of it; one that is under way is left at that.
    /// The reference is as [`Reference::parse`] reads it.
    pub async fn start(&self, reference: &str) -> Result<Started, Error> {
        let _command = self.0.commands.lock().await;
        let (id, is_new) = self.begin(reference).await?;
        let job = self.keep(id);
        let job = job.ok_or_else(|| Error::Unexpected("the download is gone".into()))?;
        Ok(Started { job, is_new })
    }

    /// As [`Downloads::start`], for as long as the follower that it returns lives.
    pub async fn follow(&self, reference: &str) -> Result<Follow, Error> {
        let _command = self.0.commands.lock().await;
        let (id, _) = self.begin(reference).await?;
        if let Some(entry) = self.0.jobs().get_mut(&id) {
            entry.followers += 1;
        }
        let (changes, job) = self
            .0
            .listen(id)
            .ok_or_else(|| Error::Unexpected("the download is gone".into()))?;
        Ok(Follow::new(self.clone(), id, changes, job))
    }

    /// Has a download go on when no follower waits for it; `None` if it is in the list no more.
    pub(crate) fn keep(&self, id: Uuid) -> Option<Job> {
        self.0.change(id, |entry| {
            entry.is_kept = true;
            entry.job()
        })
    }

    /// Stops a download; what is here is kept.
    pub async fn pause(&self, id: Uuid) -> Result<Job, CommandError> {
        let _command = self.0.commands.lock().await;
        self.halt(id).await;
        let job = self.require_job(id)?;
        match job.state {
            // It ended while it was asked to stop, or before.
            State::Paused | State::Done => Ok(job),
            state => Err(CommandError::State {
                model: job.model,
                state,
                hint: "resume it to try again",
            }),
        }
    }

    /// Goes on with a download that is paused or failed.
    pub async fn resume(&self, id: Uuid) -> Result<Job, CommandError> {
        let _command = self.0.commands.lock().await;
        let job = self.require_job(id)?;
        match job.state {
            State::Paused | State::Failed => {
                self.launch(id, &job.model).await?;
                self.0.change(id, |entry| entry.is_kept = true);
                self.require_job(id)
            }
            State::Done => Err(CommandError::State {
                model: job.model,
                state: State::Done,
                hint: "the model is on this machine",
            }),
            State::Queued | State::Listing | State::Downloading | State::Verifying => Ok(job),
        }
    }

    /// Ends a download and removes what is here of it; of a finished one only the row goes.
    pub async fn cancel(&self, id: Uuid) -> Result<(), CommandError> {
        let _command = self.0.commands.lock().await;
        self.halt(id).await;
        let job = self.require_job(id)?;
        if job.state != State::Done {
            let folder = self.0.folder(&job.model);
            blocking(move || {
                let _lock = folder.lock(&job.model)?;
                folder.remove()
            })
            .await?;
        }
        self.0.forget(id);
        Ok(())
    }

    /// Goes on with what an earlier process was at work on when it ended; for a server's start.
    pub async fn resume_interrupted(&self) {
        let interrupted: Vec<Uuid> = self
            .0
            .jobs()
            .values()
            .filter(|entry| entry.was_interrupted && entry.record.state == State::Paused)
            .map(|entry| entry.record.id)
            .collect();
        for id in interrupted {
            if let Err(error) = self.resume(id).await {
                tracing::warn!(%error, "cannot resume a download");
            }
        }
    }

    /// Stops all downloads with what is here on the disk; the next server goes on with them.
    pub async fn close(&self) {
        let _command = self.0.commands.lock().await;
        let running: Vec<Uuid> = self
            .0
            .jobs()
            .values()
            .filter(|entry| entry.running.is_some())
            .map(|entry| entry.record.id)
            .collect();
        for id in running {
            self.halt(id).await;
            let record = self.0.read(id, |entry| entry.record.clone());
            let Some(mut record) = record.filter(|record| record.state == State::Paused) else {
                continue;
            };
            // As if it had been interrupted.
            record.state = State::Downloading;
            let folder = self.0.folder(&record.model);
            if let Err(error) = blocking(move || folder.write_record(&record)).await {
                tracing::warn!(%error, "cannot save the state of a download");
            }
        }
    }

    /// Notes that a follower waits no longer.
    pub(crate) async fn release(&self, id: Uuid) {
        let _command = self.0.commands.lock().await;
        let is_unwanted = {
            let mut jobs = self.0.jobs();
            let Some(entry) = jobs.get_mut(&id) else {
                return;
            };
            entry.followers = entry.followers.saturating_sub(1);
            entry.followers == 0 && !entry.is_kept
        };
        if is_unwanted {
            self.halt(id).await;
        }
    }

    fn require_job(&self, id: Uuid) -> Result<Job, CommandError> {
        self.job(id).ok_or(CommandError::Unknown(id))
    }

    /// Stops the task of a download, if there is one, and waits for its end.
    async fn halt(&self, id: Uuid) {
        let running = self
            .0
            .jobs()
            .get_mut(&id)
            .and_then(|entry| entry.running.take());
        if let Some(Running { stop, task }) = running {
            // Fails when it has just ended.
            let _ = stop.send(());
            if let Err(error) = task.await {
                tracing::error!(%error, "a download ended badly");
            }
        }
    }
}
