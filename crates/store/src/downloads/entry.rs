//! A download in the memory of this process.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    job::{Job, State},
    progress::Progress,
    record::Record,
    speed::Speed,
};

/// What is known of a download, and who wants it.
#[derive(Debug)]
pub(super) struct Entry {
    pub record: Record,
    /// `None` until the list of files is known.
    pub progress: Option<Arc<Progress>>,
    pub speed: Speed,
    pub running: Option<Running>,
    /// Those who wait for it and stop it when they leave.
    pub followers: usize,
    /// It was asked for as a job of its own, and goes on without followers.
    pub is_kept: bool,
    /// An earlier process ended in the middle of it.
    pub was_interrupted: bool,
}

/// A task at work.
#[derive(Debug)]
pub(super) struct Running {
    pub stop: oneshot::Sender<()>,
    pub task: JoinHandle<()>,
}

impl Entry {
    pub(super) fn new(record: Record) -> Self {
        Self {
            record,
            progress: None,
            speed: Speed::default(),
            running: None,
            followers: 0,
            is_kept: false,
            was_interrupted: false,
        }
    }

    pub(super) fn set_state(&mut self, state: State) {
        self.record.state = state;
        self.record.updated = Timestamp::now();
    }

    pub(super) fn job(&self) -> Job {
        let record = &self.record;
        let progress = self.progress.as_deref();
        let state = match record.state {
            State::Downloading if progress.is_some_and(Progress::is_verifying) => State::Verifying,
            state => state,
        };
        let is_moving = state == State::Downloading;
        let eta = progress
            .filter(|_| is_moving)
            .and_then(|progress| self.speed.eta(progress.remaining_bytes()));
        Job {
            id: record.id,
            model: record.model.clone(),
            revision: record.revision.clone(),
            commit: record.commit.clone(),
            state,
            total_bytes: progress.map(|_| record.total_bytes()),
            done_bytes: progress.map_or(0, Progress::done_bytes),
            bytes_per_second: if is_moving {
                self.speed.bytes_per_second()
            } else {
                0.0
            },
            eta_seconds: eta.map(|eta| eta.as_secs_f64()),
            files: progress.map(Progress::snapshot).unwrap_or_default(),
            error: record.error.clone(),
            created: record.created,
            updated: record.updated,
        }
    }
}
