//! The queue and the turns: asks the policy, does what it says.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use macmlx_inference::{InferenceError, ModelCard};
use tokio::sync::oneshot;

use super::{
    decode::InFlight,
    entry::Entry,
    policy::{self, Action, Head, State, Turns},
    sequence::{Prefill, Sequence},
};
use crate::{
    encode,
    job::{Job, Ready},
    masks::MaskThreads,
    options::EngineOptions,
    pool::Pool,
    profile::Profile,
    thread::{Owner, Turn},
};

/// Batches of texts are this much smaller than chunks of a prompt while an answer is streamed:
/// there are many more of them, and each is a pause.
const SHARE_BESIDE_DECODE: usize = 4;

/// How often models in memory are looked at whose time may be over. A time that is known is kept to
/// the moment while nothing runs; times to live may change without a message.
const REVIEW: Duration = Duration::from_secs(5);

/// Everything that lives on the MLX thread.
pub(crate) struct Scheduler {
    pub(super) options: EngineOptions,
    pub(super) pool: Pool,
    queue: VecDeque<Entry>,
    encoding: encode::Queue,
    pub(super) prefilling: Vec<Prefill>,
    pub(super) decoding: Vec<Sequence>,
    pub(super) in_flight: Option<InFlight>,
    /// Channels to notify when the model in memory is gone.
    unload_requests: Vec<oneshot::Sender<bool>>,
    pub(super) turns: Turns,
    /// Prefill chunks and decode steps so far.
    pub(super) chunks: u64,
    pub(super) steps: u64,
    pub(super) next_id: u64,
    /// MLX may hold buffers of what has ended.
    pub(super) has_garbage: bool,
    pub(super) mask_threads: Arc<MaskThreads>,
    /// When models in memory are looked at again whose time may be over.
    next_review: Instant,
}

impl Scheduler {
    pub(crate) fn new(options: EngineOptions, pool: Pool) -> Self {
        Self {
            options,
            pool,
            queue: VecDeque::new(),
            encoding: encode::Queue::default(),
            prefilling: Vec::new(),
            decoding: Vec::new(),
            in_flight: None,
            unload_requests: Vec::new(),
            turns: Turns::default(),
            chunks: 0,
            steps: 0,
            next_id: 0,
            has_garbage: false,
            mask_threads: Arc::new(MaskThreads::new()),
            next_review: Instant::now(),
        }
    }

    /// Takes a request into the queue.
    pub(crate) fn submit(&mut self, job: Job) {
        let mut entry = Entry::Generate(Box::new(job));
        if self.pool.holds(entry.card()) && self.unload_requests.is_empty() {
            entry.answer(&Ok(()));
        }
        self.queue.push_back(entry);
    }

    /// Takes the wish for a model into the queue.
    pub(crate) fn submit_load(&mut self, card: ModelCard, ready: Ready) {
        self.queue.push_back(Entry::Load {
            card: Box::new(card),
            ready,
        });
    }

    /// Takes texts into the encoders' queue.
    pub(crate) fn submit_encoding(&mut self, job: encode::Job) {
        self.encoding.submit(job);
    }

    /// Takes the wish for an encoder into their queue.
    pub(crate) fn submit_encoder_load(&mut self, profile: Arc<Profile>, ready: Ready) {
        if self.pool.encoders.holds(&profile.card) {
            let _ = ready.send(Ok(()));
        } else {
            self.encoding.submit_load(profile, ready);
        }
    }

    /// Drops the model `id` once nothing runs on it; answers whether it was there.
    pub(crate) fn submit_unload(&mut self, id: &str, done: oneshot::Sender<bool>) {
        if self.pool.held_id() == Some(id) {
            self.unload_requests.push(done);
        } else if self.pool.encoders.holds_id(id) {
            self.encoding.submit_unload(id.to_owned(), done);
        } else {
            let _ = done.send(false);
        }
    }

    /// Drops the models whose time is over; whether there were any.
    fn drop_expired(&mut self) -> bool {
        let now = Instant::now();
        let review = self.pool.residents().review(now);
        let latest = now + REVIEW;
        self.next_review = review.next.map_or(latest, |next| next.min(latest));
        for id in &review.expired {
            tracing::info!(model = id, "the model leaves memory: its time is over");
            // No caller waits for this unload.
            let (done, _) = oneshot::channel();
            self.submit_unload(id, done);
        }
        !review.expired.is_empty()
    }

    fn next_action(&mut self) -> Action {
        if !self.queue.is_empty() {
            self.queue.retain(|entry| !entry.is_cancelled());
        }
        let prefilling: Vec<usize> = self.prefilling.iter().map(Prefill::remaining).collect();
        let prefilling_choices: usize = self
            .prefilling
            .iter()
            .map(|prefill| prefill.choices.len())
            .sum();
        policy::next(&State {
            head: self.queue.front().map(|entry| Head {
                is_loaded: self.pool.holds(entry.card()),
                choices: entry.choices(),
            }),
            unload_requested: !self.unload_requests.is_empty(),
            occupied: prefilling_choices + self.decoding.len(),
            max_batch: self.options.max_batch,
            prefilling: &prefilling,
            decoding: self.decoding.len(),
            encoding: self.encoding.sweep(),
            turns: self.turns,
            chunks: self.chunks,
            chunk_size: self.chunk_size(),
        })
    }

    /// Removes sequences whose clients are gone.
    fn sweep(&mut self) {
        let before = self.prefilling.len() + self.decoding.len();
        self.prefilling
            .retain(|prefill| !prefill.request.borrow().is_over());
        self.decoding
            .retain(|sequence| !sequence.choice.request.borrow().is_over());
        self.has_garbage |= self.prefilling.len() + self.decoding.len() < before;
    }

    fn admit(&mut self) {
        match self.queue.pop_front() {
            Some(Entry::Generate(job)) => self.start(*job),
            Some(Entry::Load { ready, .. }) => {
                let _ = ready.send(Ok(()));
            }
            None => {}
        }
    }

    fn load(&mut self) {
        let Some(card) = self.queue.front().map(|entry| entry.card().clone()) else {
            return;
        };
        let wants = |entry: &Entry| *entry.card() == card;
        for entry in self.queue.iter_mut().filter(|entry| wants(entry)) {
            entry.tell_loading();
        }
        let begun = Instant::now();
        let result = self.pool.load(&card);
        let elapsed = begun.elapsed();
        let mut rest = VecDeque::with_capacity(self.queue.len());
        for mut entry in self.queue.drain(..) {
            match &result {
                Err(error) if wants(&entry) => {
                    entry.fail(error);
                    continue;
                }
                Ok(()) if wants(&entry) => entry.tell_loaded(elapsed),
                Ok(()) | Err(_) => {}
            }
            rest.push_back(entry);
        }
        self.queue = rest;
    }

    fn unload(&mut self) {
        let was_loaded = self.pool.unload();
        for done in self.unload_requests.drain(..) {
            let _ = done.send(was_loaded);
        }
    }

    /// Ends every running request with this error.
    pub(super) fn fail_running(&mut self, error: &InferenceError) {
        self.in_flight = None;
        let prefilling = self.prefilling.drain(..).map(|prefill| prefill.request);
        let decoding = self
            .decoding
            .drain(..)
            .map(|sequence| sequence.choice.request);
        for request in prefilling.chain(decoding) {
            request.borrow_mut().fail(error.clone());
        }
        self.has_garbage = true;
    }

    /// Gives buffers of ended sequences back to the system; only when nothing runs, because
    /// running sequences would soon ask for them again.
    fn collect_garbage(&mut self) {
        if self.has_garbage {
            self.in_flight = None;
            self.has_garbage = false;
            if let Err(error) = mlx_rs::memory::clear_cache() {
                tracing::warn!(%error, "MLX kept its buffers");
            }
        }
    }
}

impl Owner for Scheduler {
    fn turn(&mut self) -> Turn {
        self.sweep();
        if self.next_review <= Instant::now() {
            self.drop_expired();
        }
        match self.next_action() {
            Action::Admit => self.admit(),
            Action::Load => self.load(),
            Action::Unload => self.unload(),
            Action::Prefill(shares) => self.prefill(&shares),
            Action::Decode => self.decode(),
            Action::Encode => {
                self.turns.note_encode();
                let share = if self.decoding.is_empty() {
                    1
                } else {
                    SHARE_BESIDE_DECODE
                };
                let budget = self.options.prefill_chunk / share;
                self.encoding.turn(&mut self.pool.encoders, budget);
            }
            Action::Wait => {
                self.collect_garbage();
                if self.drop_expired() {
                    return Turn::Busy;
                }
                if self.pool.is_empty() {
                    return Turn::Idle;
                }
                return Turn::IdleUntil(self.next_review);
            }
        }
        Turn::Busy
    }

    fn recover(&mut self, message: &str) {
        let error = InferenceError::Engine {
            message: message.to_owned(),
        };
        self.encoding.fail(&error);
        self.fail_running(&error);
    }

    fn close(&mut self) {
        self.encoding.fail(&InferenceError::ShuttingDown);
        self.fail_running(&InferenceError::ShuttingDown);
        for entry in self.queue.drain(..) {
            entry.fail(&InferenceError::ShuttingDown);
        }
        self.unload();
        self.pool.clear();
    }
}
