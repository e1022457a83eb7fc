//! What waits in the scheduler's queue.

use std::time::Duration;

use macmlx_inference::{GenerationEvent, InferenceError, ModelCard};

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

    /// Says once whether events of the request come: the model is there, or is being loaded.
    pub(super) fn answer(&mut self, result: &Result<(), InferenceError>) {
        if let Self::Generate(job) = self
            && let Some(ready) = job.ready.take()
        {
            let _ = ready.send(result.clone());
        }
    }

    /// Tells that the model is being loaded.
    pub(super) fn tell_loading(&mut self) {
        if let Self::Generate(job) = self {
            let model = job.draft.profile.card.id.clone();
            let _ = job.events.send(Ok(GenerationEvent::Loading { model }));
        }
        self.answer(&Ok(()));
    }

    /// Tells that the model is there.
    pub(super) fn tell_loaded(&mut self, elapsed: Duration) {
        if let Self::Generate(job) = self {
            job.load += elapsed;
            let _ = job.events.send(Ok(GenerationEvent::Loaded { elapsed }));
        }
    }

    /// Ends it with an error.
    pub(super) fn fail(mut self, error: &InferenceError) {
        self.answer(&Err(error.clone()));
        match self {
            Self::Generate(job) => {
                let _ = job.events.send(Err(error.clone()));
            }
            Self::Load { ready, .. } => {
                let _ = ready.send(Err(error.clone()));
            }
        }
    }
}
