//! What waits in the scheduler's queue.

use std::time::Instant;

use macmlx_inference::{InferenceError, ModelCard};

use crate::job::{Job, Ready};

/// What waits for the model it wants.
pub(super) enum Entry {
    Generate(Box<Job>),
    Load { card: Box<ModelCard>, ready: Ready },
}

impl Entry {
    pub(super) fn card(&self) -> &ModelCard {
        match self {
            Self::Generate(job) => &job.draft.profile.card,
            Self::Load { card, .. } => card,
        }
    }

    pub(super) fn choices(&self) -> usize {
        match self {
            Self::Generate(job) => job.draft.outputs.len(),
            Self::Load { .. } => 0,
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        match self {
            Self::Generate(job) => {
                job.events.is_closed() || job.ready.as_ref().is_some_and(Ready::is_closed)
            }
            // The caller may be gone, but the load is wanted all the same.
            Self::Load { .. } => false,
        }
    }

    /// Says once whether the model is there.
    pub(super) fn answer(&mut self, result: &Result<(), InferenceError>) {
        if let Self::Generate(job) = self {
            job.loaded = Some(Instant::now());
            if let Some(ready) = job.ready.take() {
                let _ = ready.send(result.clone());
            }
        }
    }
}
