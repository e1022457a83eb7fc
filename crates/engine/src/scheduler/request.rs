//! What the choices of one request share.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Instant};

use macmlx_inference::{GenerationEvent, InferenceError, Logprobs, Timings, Usage};

use crate::{
    job::{EndConditions, EventSender},
    pool::ActiveTicket,
    profile::Profile,
};

/// One client request; its choices hold it together.
pub(super) type SharedRequest = Rc<RefCell<Request>>;

/// A request on the MLX thread.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) profile: Arc<Profile>,
    pub(super) end: EndConditions,
    pub(super) logprobs: Option<Logprobs>,
    pub(super) reasoning_budget: Option<u32>,
    events: EventSender,
    usage: Usage,
    timings: Timings,
    admitted: Instant,
    first_token: Option<Instant>,
    /// Choices that have not ended.
    open_choices: usize,
    has_failed: bool,
    _active: ActiveTicket,
}

impl Request {
    #[expect(
        clippy::too_many_arguments,
        reason = "the one place that takes a job apart"
    )]
    pub(super) fn new(
        profile: Arc<Profile>,
        end: EndConditions,
        logprobs: Option<Logprobs>,
        reasoning_budget: Option<u32>,
        events: EventSender,
        timings: Timings,
        choices: usize,
        prompt_tokens: u32,
        active: ActiveTicket,
    ) -> Self {
        let request = Self {
            profile,
            end,
            logprobs,
            reasoning_budget,
            events,
            usage: Usage {
                prompt_tokens,
                ..Usage::default()
            },
            timings,
            admitted: Instant::now(),
            first_token: None,
            open_choices: choices,
            has_failed: false,
            _active: active,
        };
        request.send(GenerationEvent::Started {
            model: request.profile.card.id.clone(),
            prompt_tokens,
            cached_tokens: 0,
        });
        request
    }

    /// Returns true if the client is gone or has been sent an error.
    pub(super) fn is_over(&self) -> bool {
        self.has_failed || self.events.is_closed()
    }

    pub(super) fn send(&self, event: GenerationEvent) {
        if !self.has_failed {
            // A closed channel is a cancelled request; the next sweep takes its sequences out.
            let _ = self.events.send(Ok(event));
        }
    }

    /// Ends the stream with an error.
    pub(super) fn fail(&mut self, error: InferenceError) {
        if !self.has_failed {
            self.has_failed = true;
            let _ = self.events.send(Err(error));
        }
    }

    /// Counts a generated token.
    pub(super) fn count_token(&mut self) {
        self.usage.completion_tokens += 1;
        let now = Instant::now();
        match self.first_token {
            None => {
                self.timings.prefill = now - self.admitted;
                self.first_token = Some(now);
            }
            Some(first) => self.timings.decode = now - first,
        }
    }

    /// Counts an ended choice; after the last one the request is complete.
    pub(super) fn close_choice(&mut self, reasoning_tokens: u32) {
        self.usage.reasoning_tokens += reasoning_tokens;
        self.open_choices -= 1;
        if self.open_choices == 0 {
            if self.first_token.is_none() {
                self.timings.prefill = self.admitted.elapsed();
            }
            self.send(GenerationEvent::Completed {
                usage: self.usage,
                timings: self.timings,
            });
        }
    }
}
