//! Tokens and times of all turns as those of one request.

use std::time::Duration;

use macmlx_inference::{GenerationEvent, Timings, Usage};
use tokio::time::Instant;

/// The prompt counts as the last turn's, the completion as every turn's. Loading, queueing and
/// prefill are the first turn's, so that they add up to the time to the first token; decoding is
/// every turn's, as its tokens are.
#[derive(Debug)]
pub(super) struct Tally {
    began: Instant,
    is_first_turn: bool,
    done: Usage,
    turn: Option<(Usage, Timings)>,
    timings: Option<Timings>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            is_first_turn: true,
            done: Usage::default(),
            turn: None,
            timings: None,
        }
    }
}

impl Tally {
    pub(super) fn is_first_turn(&self) -> bool {
        self.is_first_turn
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn count(&mut self, event: &GenerationEvent) {
        if let GenerationEvent::Completed { usage, timings } = event {
            self.turn = Some((*usage, *timings));
        }
    }

    pub(super) fn next_turn(&mut self) {
        self.is_first_turn = false;
        self.add();
    }

    /// The end of the whole stream, if its last turn came to an end.
    pub(super) fn completed(&mut self) -> Option<GenerationEvent> {
        self.turn?;
        self.add();
        Some(GenerationEvent::Completed {
            usage: self.done,
            timings: self.timings.unwrap_or_default(),
        })
    }

    fn add(&mut self) {
        let Some((usage, timings)) = self.turn.take() else {
            return;
        };
        self.done = Usage {
            completion_tokens: self.done.completion_tokens + usage.completion_tokens,
            reasoning_tokens: self.done.reasoning_tokens + usage.reasoning_tokens,
            ..usage
        };
        match &mut self.timings {
            Some(whole) => whole.decode += timings.decode,
            None => self.timings = Some(timings),
        }
    }
}
