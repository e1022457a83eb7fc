//! A request for an encoder, from its arrival to its answer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use macmlx_inference::{InferenceError, ModelCard};
use tokio::sync::oneshot;

use super::{Draft, batches::Waiting};
use crate::{
    job::Ready,
    pool::{ActiveTicket, WaitTicket},
    profile::Profile,
};

/// A draft and the channel for its answer. Dropping the other end cancels it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) draft: Draft,
    pub(crate) answer: oneshot::Sender<Result<Encoded, InferenceError>>,
    pub(crate) waiting: WaitTicket,
    pub(crate) active: ActiveTicket,
}

/// The result of a job.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// One row for each text, in the order of the texts.
    pub(crate) rows: Vec<Vec<f32>>,
    /// Spent waiting for the model.
    pub(crate) load: Duration,
}

/// A request in the queue.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) profile: Arc<Profile>,
    pub(super) work: Work,
}

#[derive(Debug)]
pub(super) enum Work {
    Load(Ready),
    Encode(Box<Encoding>),
}

#[derive(Debug)]
pub(super) struct Encoding {
    pub(super) job: Progress,
    pub(super) answer: oneshot::Sender<Result<Encoded, InferenceError>>,
}

/// How far a job is.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) draft: Draft,
    /// Shortest first.
    pub(super) rest: Vec<Waiting>,
    pub(super) rows: Vec<Vec<f32>>,
    pub(super) submitted: Instant,
    pub(super) load: Duration,
    /// Gone once started.
    pub(super) waiting: Option<WaitTicket>,
    pub(super) active: ActiveTicket,
}

impl Entry {
    pub(super) fn encode(job: Job) -> Self {
        let mut rest: Vec<Waiting> = job
            .draft
            .texts
            .iter()
            .enumerate()
            .map(|(index, text)| Waiting {
                length: text.ids.len(),
                index,
            })
            .collect();
        rest.sort_by_key(|text| text.length);
        let progress = Progress {
            rows: vec![Vec::new(); rest.len()],
            rest,
            submitted: Instant::now(),
            load: Duration::ZERO,
            waiting: Some(job.waiting),
            active: job.active,
            draft: job.draft,
        };
        Self {
            profile: progress.draft.profile.clone(),
            work: Work::Encode(Box::new(Encoding {
                job: progress,
                answer: job.answer,
            })),
        }
    }

    pub(super) fn load(profile: Arc<Profile>, ready: Ready) -> Self {
        Self {
            profile,
            work: Work::Load(ready),
        }
    }

    pub(super) fn card(&self) -> &ModelCard {
        &self.profile.card
    }

    pub(super) fn is_cancelled(&self) -> bool {
        match &self.work {
            // The caller may be gone, but the load is wanted all the same.
            Work::Load(_) => false,
            Work::Encode(encoding) => encoding.answer.is_closed(),
        }
    }

    pub(super) fn is_started(&self) -> bool {
        matches!(&self.work, Work::Encode(encoding) if encoding.job.waiting.is_none())
    }

    pub(super) fn fail(self, error: InferenceError) {
        match self.work {
            Work::Load(ready) => {
                let _ = ready.send(Err(error));
            }
            Work::Encode(encoding) => {
                let _ = encoding.answer.send(Err(error));
            }
        }
    }
}
