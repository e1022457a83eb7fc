//! The body of a streamed answer: frames as they come, signs of life while none do, and always a
//! proper end.

use std::{convert::Infallible, time::Duration};

use axum::body::{Body, Bytes};
use futures::stream;
use macmlx_inference::{GenerationEvent, InferenceError};
use macmlx_protocol::StreamEncoder;
use tokio::time::{Instant, sleep_until};

use crate::{
    closing::Closing,
    running::{Running, Starting},
};

/// Where the next event comes from.
pub(crate) enum Source {
    /// The request is not admitted yet, for example because the model is still loading.
    Starting(Starting),
    Running(Running),
    Over,
}

/// A body that is pulled by the connection, so that a slow reader slows only itself, and whose drop
/// cancels the generation.
pub(crate) fn body<E: StreamEncoder>(
    source: Source,
    encoder: E,
    keep_alive: Duration,
    closing: Closing,
) -> Body {
    let live = Live {
        source,
        encoder,
        keep_alive,
        silent_until: Instant::now() + keep_alive,
        closing,
    };
    Body::from_stream(stream::unfold(live, |mut live| async move {
        let bytes = live.next().await?;
        Some((Ok::<_, Infallible>(bytes), live))
    }))
}

struct Live<E> {
    source: Source,
    encoder: E,
    keep_alive: Duration,
    silent_until: Instant,
    closing: Closing,
}

enum Step {
    Admitted(Running),
    Event(usize, GenerationEvent),
    Failed(InferenceError),
    Complete,
    Silence,
}

impl<E: StreamEncoder> Live<E> {
    async fn next(&mut self) -> Option<Bytes> {
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
            for frame in &frames {
                E::FRAMING.write(frame, &mut text);
            }
            if !text.is_empty() {
                self.silent_until = Instant::now() + self.keep_alive;
                return Some(text.into());
            }
        }
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
