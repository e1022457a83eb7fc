//! Masks of the tokens that a grammar allows next, computed on threads of their own while the
//! device computes the logits they are for.
//!
//! Invariants:
//! - A mask is asked for as soon as the token before it is known, and waited for only when logits
//!   are to be sampled.
//! - A constraint is at one place at a time: with its sequence or with the thread that computes.

use std::{
    num::NonZero,
    sync::{Arc, mpsc},
    thread::available_parallelism,
};

use macmlx_chat::Constraint;
use macmlx_inference::InferenceError;

/// Masks are short work; more threads than this would only take time from the device's own.
const MOST_THREADS: usize = 4;

/// Where masks are computed.
#[derive(Debug)]
pub(crate) struct MaskThreads {
    /// `None`: no thread could be started, and masks are computed where they are asked for.
    pool: Option<rayon::ThreadPool>,
}

impl MaskThreads {
    pub(crate) fn new() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(cores.min(MOST_THREADS))
            .thread_name(|index| format!("masks-{index}"))
            .panic_handler(|_| tracing::error!("a mask could not be computed: its thread panicked"))
            .build();
        if let Err(error) = &pool {
            tracing::warn!(%error, "masks of grammars are computed on the MLX thread");
        }
        Self { pool: pool.ok() }
    }

    fn run(&self, work: impl FnOnce() + Send + 'static) {
        match &self.pool {
            Some(pool) => pool.spawn(work),
            None => work(),
        }
    }
}

/// One sequence in its grammar.
#[derive(Debug)]
pub(crate) struct Constrained {
    state: State,
    threads: Arc<MaskThreads>,
    /// Columns of the logits.
    vocab_size: usize,
}

#[derive(Debug)]
enum State {
    Computing(mpsc::Receiver<Computed>),
    Ready(Box<Computed>),
    /// The thread that had it is gone.
    Lost,
}

#[derive(Debug)]
struct Computed {
    constraint: Constraint,
    /// Whether each token may come next.
    allowed: Result<Vec<bool>, InferenceError>,
}

/// Where an output is after a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Open,
    /// Nothing can follow.
    Complete,
}

impl Constrained {
    /// Begins to compute the first mask.
    pub(crate) fn new(constraint: Constraint, threads: Arc<MaskThreads>, vocab_size: u32) -> Self {
        let mut constrained = Self {
            state: State::Lost,
            threads,
            vocab_size: vocab_size as usize,
        };
        constrained.compute(constraint);
        constrained
    }

    /// Returns which tokens may come next; waits until this is known.
    pub(crate) fn allowed(&mut self) -> Result<&[bool], InferenceError> {
        match &self.ready()?.allowed {
            Ok(allowed) => Ok(allowed),
            Err(error) => Err(error.clone()),
        }
    }

    /// Takes the token that came, and begins to compute the mask of the one after it.
    pub(crate) fn advance(&mut self, token: u32) -> Result<Progress, InferenceError> {
        self.ready()?;
        let State::Ready(computed) = std::mem::replace(&mut self.state, State::Lost) else {
            return Err(lost());
        };
        let mut constraint = computed.constraint;
        constraint.advance(token)?;
        if constraint.is_complete() {
            return Ok(Progress::Complete);
        }
        self.compute(constraint);
        Ok(Progress::Open)
    }

    fn compute(&mut self, mut constraint: Constraint) {
        let (sender, receiver) = mpsc::sync_channel(1);
        let vocab_size = self.vocab_size;
        self.threads.run(move || {
            let allowed = constraint.allowed().map(|mut allowed| {
                allowed.resize(vocab_size, false);
                allowed
            });
            // A sequence that has ended meanwhile wants no mask.
            let _ = sender.send(Computed {
                constraint,
                allowed,
            });
        });
        self.state = State::Computing(receiver);
    }

    fn ready(&mut self) -> Result<&Computed, InferenceError> {
        if let State::Computing(receiver) = &self.state {
            self.state = match receiver.recv() {
                Ok(computed) => State::Ready(Box::new(computed)),
                Err(_) => State::Lost,
            };
        }
        match &self.state {
            State::Ready(computed) => Ok(computed),
            State::Computing(_) | State::Lost => Err(lost()),
        }
    }
}

fn lost() -> InferenceError {
    InferenceError::Engine {
        message: "the grammar of this output is lost; the log says why".into(),
    }
}
