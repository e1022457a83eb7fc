//! The body of a streamed answer: frames as they come, signs of life while none do, and always a
//! proper end.

use std::{convert::Infallible, time::Duration};

use axum::body::{Body, Bytes};
use futures::{FutureExt, stream};
use macmlx_inference::{GenerationEvent, InferenceError};
use macmlx_protocol::{Frame, StreamEncoder};
use tokio::time::{Instant, sleep_until};

use crate::{
    closing::Closing,
    running::{Running, Starting},
};

/// Where the next event comes from.
enum Source {
    /// The request is not admitted yet, for example because the model is still loading.
    Starting(Starting),
    Running(Running),
    Over,
}

/// The frames of an answer, which are pulled by the connection, so that a slow reader slows only
/// itself. Dropping it cancels the generation.
pub(crate) struct Live<E> {
    source: Source,
    encoder: E,
    keep_alive: Duration,
    silent_until: Instant,
    closing: Closing,
    /// What was written before there was a body.
    begun: String,
}

enum Step {
    Admitted(Running),
    Event(usize, GenerationEvent),
    Failed(InferenceError),
    Complete,
    Silence,
}

impl<E: StreamEncoder> Live<E> {
    /// The answer to a request on its way.
    pub(crate) fn new(
        starting: Starting,
        encoder: E,
        keep_alive: Duration,
        closing: Closing,
    ) -> Self {
        Self {
            source: Source::Starting(starting),
            encoder,
            keep_alive,
            silent_until: Instant::now() + keep_alive,
            closing,
            begun: String::new(),
        }
    }

    /// Waits while the request is checked and its model is loaded: what fails until then, and before
    /// anything is written, is the error. Ends early where that takes long, so that the client sees
    /// signs of life; what fails later is a frame.
    pub(crate) async fn begin(&mut self) -> Result<(), InferenceError> {
        let mut is_loading = false;
        while self.begun.is_empty() {
            let step = if is_loading || matches!(self.source, Source::Starting(_)) {
                tokio::select! {
                    biased;
                    () = self.closing.closed() => Step::Failed(InferenceError::ShuttingDown),
                    step = self.source.step() => step,
                    () = sleep_until(self.silent_until) => return Ok(()),
                }
            } else if let Some(step) = self.source.step().now_or_never() {
                step
            } else {
                return Ok(());
            };
            match step {
                Step::Admitted(running) => self.source = Source::Running(running),
                Step::Event(prompt, event) => {
                    let is_about_loading = matches!(
                        event,
                        GenerationEvent::Loading { .. } | GenerationEvent::Loaded { .. }
                    );
                    is_loading = matches!(event, GenerationEvent::Loading { .. });
                    let frames = self.encoder.encode(prompt, event);
                    write::<E>(&frames, &mut self.begun);
                    if !is_about_loading {
                        return Ok(());
                    }
                }
                Step::Failed(error) => return Err(error),
                Step::Complete | Step::Silence => return Ok(()),
            }
        }
        Ok(())
    }

    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut live| async move {
            let bytes = live.next().await?;
            Some((Ok::<_, Infallible>(bytes), live))
        }))
    }

    async fn next(&mut self) -> Option<Bytes> {
        if !self.begun.is_empty() {
            return Some(std::mem::take(&mut self.begun).into());
        }
        loop {
            let step = tokio::select! {
                biased;
                () = self.closing.closed(), if !matches!(self.source, Source::Over) => {
                    Step::Failed(InferenceError::ShuttingDown)
                }
                step = self.source.step() => step,
                () = sleep_until(self.silent_until) => Step::Silence,
            };
            let frames = match step {
                Step::Admitted(running) => {
                    self.source = Source::Running(running);
                    continue;
                }
                Step::Event(prompt, event) => self.encoder.encode(prompt, event),
                Step::Failed(error) => {
                    tracing::warn!(%error, "a stream failed");
                    self.source = Source::Over;
                    self.encoder.encode_error(&error)
                }
                Step::Complete => return None,
                Step::Silence => {
                    self.silent_until = Instant::now() + self.keep_alive;
                    self.encoder.heartbeat()
                }
            };
            let mut text = String::new();
            write::<E>(&frames, &mut text);
            if !text.is_empty() {
                self.silent_until = Instant::now() + self.keep_alive;
                return Some(text.into());
            }
        }
    }
}

fn write<E: StreamEncoder>(frames: &[Frame], text: &mut String) {
    for frame in frames {
        E::FRAMING.write(frame, text);
    }
}

impl Source {
    async fn step(&mut self) -> Step {
        match self {
            Self::Starting(starting) => match starting.await {
                Ok(running) => Step::Admitted(running),
                Err(error) => Step::Failed(error),
            },
            Self::Running(running) => match running.next().await {
                Some(Ok((prompt, event))) => Step::Event(prompt, event),
                Some(Err(error)) => Step::Failed(error),
                None => Step::Complete,
            },
            Self::Over => Step::Complete,
        }
    }
}
