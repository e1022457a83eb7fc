//! What was asked of encoders, and the steps that do it, one a turn.
//!
//! Invariants:
//! - Requests are kept in order of arrival. The models of the oldest are in memory, as many as fit
//!   there at once, so that two requests never push each other's models out in turn.
//! - A request is started with its first batch; then its model stays until it has ended.
//! - All rows of a request or an error: nothing is answered by halves.

use std::sync::Arc;

use macmlx_inference::{InferenceError, ModelCard};
use macmlx_models::{Encoder, EncoderText};
use tokio::sync::oneshot;

use super::{
    batches::{self, Pick, Rest},
    entry::{Encoded, Encoding, Entry, Job, Work},
    rows::{forward, shorten},
};
use crate::{
    job::{Ready, invalid},
    pool::Encoders,
    profile::Profile,
    thread::caught,
};

/// Bytes that MLX may keep for reuse between batches, whose arrays have sizes of their own.
const KEPT_BYTES: usize = 256 << 20;

/// Requests that wait or are computed.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: Vec<Entry>,
    /// Models to be dropped once no started request needs them, and whom to tell.
    unloads: Vec<(String, oneshot::Sender<bool>)>,
    batches: u64,
    /// Tokens of a batch after a larger one ran out of memory.
    limit: Option<usize>,
}

/// What is done in a turn.
enum Step {
    Unload(usize),
    Load(usize),
    /// Encodes these texts with the model of the entry at this index.
    Batch(usize, Vec<Pick>),
}

impl Queue {
    /// Takes a job in.
    pub(crate) fn submit(&mut self, job: Job) {
        if self.entries.is_empty() {
            // What was in memory may be gone.
            self.limit = None;
        }
        self.entries.push(Entry::encode(job));
    }

    /// Takes the wish for a model in.
    pub(crate) fn submit_load(&mut self, profile: Arc<Profile>, ready: Ready) {
        self.entries.push(Entry::load(profile, ready));
    }

    /// Drops the encoder `id` once no started request needs it.
    pub(crate) fn submit_unload(&mut self, id: String, done: oneshot::Sender<bool>) {
        self.unloads.push((id, done));
    }

    /// Removes work that no caller waits for; returns whether anything is left to do.
    pub(crate) fn sweep(&mut self) -> bool {
        self.entries.retain(|entry| !entry.is_cancelled());
        !self.entries.is_empty() || !self.unloads.is_empty()
    }

    /// Ends everything with this error.
    pub(crate) fn fail(&mut self, error: &InferenceError) {
        for entry in self.entries.drain(..) {
            entry.fail(error.clone());
        }
    }

    /// Loads or drops a model or computes one batch of at most `budget` tokens.
    pub(crate) fn turn(&mut self, encoders: &mut Encoders, budget: usize) {
        match self.next(encoders, budget) {
            Some(Step::Unload(index)) => {
                let (id, done) = self.unloads.remove(index);
                let _ = done.send(encoders.unload(&id));
            }
            Some(Step::Load(index)) => self.load(index, encoders),
            Some(Step::Batch(index, picks)) => self.compute(index, &picks, encoders),
            None => {}
        }
    }

    fn next(&self, encoders: &Encoders, budget: usize) -> Option<Step> {
        let is_needed = |id: &str| {
            let mut started = self.entries.iter().filter(|entry| entry.is_started());
            started.any(|entry| entry.card().id == id)
        };
        if let Some(index) = self.unloads.iter().position(|(id, _)| !is_needed(id)) {
            return Some(Step::Unload(index));
        }
        let models = self.models();
        let is_missing = |entry: &Entry| {
            models.contains(&entry.card())
                && !self.is_held_back(entry)
                && !encoders.holds(entry.card())
        };
        if let Some(index) = self.entries.iter().position(is_missing) {
            return Some(Step::Load(index));
        }
        let mut places = Vec::new();
        let mut rests = Vec::new();
        for (place, entry) in self.entries.iter().enumerate() {
            if let Work::Encode(encoding) = &entry.work
                && !self.is_held_back(entry)
                && let Some(model) = models.iter().position(|card| *card == entry.card())
            {
                places.push(place);
                rests.push(Rest {
                    model,
                    pads: encoders.pads(entry.card()),
                    texts: &encoding.job.rest,
                });
            }
        }
        let budget = self.limit.map_or(budget, |limit| limit.min(budget));
        let mut picks = batches::next(&rests, self.batches, budget);
        for pick in &mut picks {
            pick.request = places[pick.request];
        }
        let first = picks.first()?.request;
        Some(Step::Batch(first, picks))
    }

    /// The models of the oldest requests, as many as may be in memory.
    fn models(&self) -> Vec<&ModelCard> {
        let mut models: Vec<&ModelCard> = Vec::new();
        for entry in self
            .entries
            .iter()
            .filter(|entry| !self.is_held_back(entry))
        {
            if models.len() < Encoders::MAX && !models.contains(&entry.card()) {
                models.push(entry.card());
            }
        }
        models
    }

    /// Waits for its model to be dropped first.
    fn is_held_back(&self, entry: &Entry) -> bool {
        !entry.is_started() && self.unloads.iter().any(|(id, _)| *id == entry.card().id)
    }

    fn load(&mut self, index: usize, encoders: &mut Encoders) {
        let profile = self.entries[index].profile.clone();
        let wanted: Vec<ModelCard> = self.models().into_iter().cloned().collect();
        let result = encoders.load(&profile, &wanted);
        for mut entry in std::mem::take(&mut self.entries) {
            if *entry.card() != profile.card {
                self.entries.push(entry);
                continue;
            }
            match (&result, entry.work) {
                (Err(error), work) => {
                    entry.work = work;
                    entry.fail(error.clone());
                }
                (Ok(()), Work::Load(ready)) => {
                    let _ = ready.send(Ok(()));
                }
                (Ok(()), Work::Encode(mut encoding)) => {
                    encoding.job.load = encoding.job.submitted.elapsed();
                    entry.work = Work::Encode(encoding);
                    self.entries.push(entry);
                }
            }
        }
    }

    fn compute(&mut self, index: usize, picks: &[Pick], encoders: &mut Encoders) {
        self.batches += 1;
        let card = self.entries[index].card().clone();
        let Some(encoder) = encoders.get(&card) else {
            return;
        };
        if self.refuse_dimensions(picks, encoder.features()) {
            return;
        }
        match self.rows(picks, encoder) {
            Ok(rows) => self.take(picks, rows),
            Err(InferenceError::OutOfMemory { message }) if picks.len() > 1 => {
                let tokens = batches::count_padded(picks);
                tracing::warn!(
                    model = card.id,
                    tokens,
                    message,
                    "a batch ran out of memory"
                );
                self.limit = Some(tokens / 2);
            }
            Err(error) => {
                tracing::error!(model = card.id, %error, "a batch failed");
                self.end(
                    |place| picks.iter().any(|pick| pick.request == place),
                    &error,
                );
            }
        }
        if mlx_rs::memory::cache_memory().is_ok_and(|bytes| bytes > KEPT_BYTES)
            && let Err(error) = mlx_rs::memory::clear_cache()
        {
            tracing::warn!(%error, "MLX kept its buffers");
        }
    }

    /// Ends the requests of a batch that want more features than there are; whether there were any.
    fn refuse_dimensions(&mut self, picks: &[Pick], features: u32) -> bool {
        let wanted = |entry: &Entry| match &entry.work {
            Work::Encode(encoding) => encoding.job.draft.dimensions,
            Work::Load(_) => None,
        };
        let too_many: Vec<usize> = (0..self.entries.len())
            .filter(|place| picks.iter().any(|pick| pick.request == *place))
            .filter(|place| wanted(&self.entries[*place]).is_some_and(|wanted| wanted > features))
            .collect();
        let Some(&first) = too_many.first() else {
            return false;
        };
        let entry = self.entries.remove(first);
        let message = format!(
            "`dimensions` is {}, but `{}` has {features}",
            wanted(&entry).unwrap_or_default(),
            entry.card().id
        );
        entry.fail(invalid("dimensions", &message));
        true
    }

    fn rows(&self, picks: &[Pick], encoder: &dyn Encoder) -> Result<Vec<Vec<f32>>, InferenceError> {
        let texts: Vec<EncoderText<'_>> = picks
            .iter()
            .filter_map(|pick| match &self.entries[pick.request].work {
                Work::Encode(encoding) => {
                    let text = &encoding.job.draft.texts[pick.text.index];
                    Some(EncoderText {
                        tokens: &text.ids,
                        second_segment: text.second_segment,
                    })
                }
                Work::Load(_) => None,
            })
            .collect();
        match caught(|| forward(encoder, &texts)) {
            Ok(rows) => Ok(rows?),
            Err(message) => Err(InferenceError::Engine { message }),
        }
    }

    /// Gives rows to their requests and answers those that are complete.
    fn take(&mut self, picks: &[Pick], rows: Vec<Vec<f32>>) {
        for (pick, row) in picks.iter().zip(rows) {
            if let Work::Encode(encoding) = &mut self.entries[pick.request].work {
                let job = &mut encoding.job;
                job.waiting = None;
                job.rest.retain(|text| text.index != pick.text.index);
                job.rows[pick.text.index] = match job.draft.dimensions {
                    Some(dimensions) => shorten(row, dimensions),
                    None => row,
                };
            }
        }
        let is_complete = |entry: &mut Entry| match &entry.work {
            Work::Encode(encoding) => encoding.job.rest.is_empty(),
            Work::Load(_) => false,
        };
        let complete: Vec<Entry> = self.entries.extract_if(.., is_complete).collect();
        for entry in complete {
            if let Work::Encode(encoding) = entry.work {
                let Encoding { job, answer } = *encoding;
                let encoded = Encoded {
                    rows: job.rows,
                    load: job.load,
                };
                // Counted out before it is answered: who has the answer sees no request any more.
                drop(job.active);
                let _ = answer.send(Ok(encoded));
            }
        }
    }

    /// Ends requests by their places.
    fn end(&mut self, is_hit: impl Fn(usize) -> bool, error: &InferenceError) {
        let entries = std::mem::take(&mut self.entries);
        for (place, entry) in entries.into_iter().enumerate() {
            if is_hit(place) {
                entry.fail(error.clone());
            } else {
                self.entries.push(entry);
            }
        }
    }
}
