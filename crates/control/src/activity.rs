//! Counters of what a backend did, kept by a backend around it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture};
use macmlx_inference::{
    Backend, EventStream, GenerateRequest, GenerationEvent, InferenceError, Layer,
};

/// Totals since the start. Order between counters does not matter to anyone.
#[derive(Debug, Default)]
pub struct Activity {
    requests: AtomicU64,
    running: AtomicU64,
    prompt_tokens: AtomicU64,
    completion_tokens: AtomicU64,
}

impl Activity {
    /// Requests that were admitted.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Of those, not ended yet.
    pub fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    /// Of completed requests.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt_tokens.load(Ordering::Relaxed)
    }

    /// Of completed requests.
    pub fn completion_tokens(&self) -> u64 {
        self.completion_tokens.load(Ordering::Relaxed)
    }

    fn observe(&self, event: &GenerationEvent) {
        if let GenerationEvent::Completed { usage, .. } = event {
            self.prompt_tokens
                .fetch_add(u64::from(usage.prompt_tokens), Ordering::Relaxed);
            self.completion_tokens
                .fetch_add(u64::from(usage.completion_tokens), Ordering::Relaxed);
        }
    }
}

/// A backend that counts and otherwise does what the one inside does.
pub struct Counted {
    inner: Arc<dyn Backend>,
    activity: Arc<Activity>,
}

impl Counted {
    pub fn new(inner: Arc<dyn Backend>, activity: Arc<Activity>) -> Self {
        Self { inner, activity }
    }
}

impl std::fmt::Debug for Counted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Counted")
            .field("activity", &self.activity)
            .finish_non_exhaustive()
    }
}

/// Counts the end of a request however it ends.
struct Observed {
    events: EventStream,
    activity: Arc<Activity>,
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.activity.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Stream for Observed {
    type Item = Result<GenerationEvent, InferenceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.events.poll_next_unpin(context);
        if let Poll::Ready(Some(Ok(event))) = &next {
            self.activity.observe(event);
        }
        next
    }
}

impl Layer for Counted {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn generate(
        &self,
        request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        async move {
            let events = self.inner.generate(request).await?;
            self.activity.requests.fetch_add(1, Ordering::Relaxed);
            self.activity.running.fetch_add(1, Ordering::Relaxed);
            Ok(Observed {
                events,
                activity: self.activity.clone(),
            }
            .boxed())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use macmlx_inference::{Prompt, ScriptedBackend, Timings, Usage};

    use super::*;

    #[tokio::test]
    async fn completed_and_dropped_requests_are_both_over() {
        let completed = GenerationEvent::Completed {
            usage: Usage {
                prompt_tokens: 3,
                completion_tokens: 5,
                ..Usage::default()
            },
            timings: Timings::default(),
        };
        let script = ScriptedBackend::default()
            .then_events(vec![Ok(completed.clone())])
            .then_events(vec![Ok(completed)])
            .then_error(InferenceError::Overloaded);
        let activity = Arc::new(Activity::default());
        let counted = Counted::new(Arc::new(script), activity.clone());
        let request = || GenerateRequest::new("m", Prompt::Text("hi".into()));
        let first = Backend::generate(&counted, request()).await.unwrap();
        assert_eq!(activity.running(), 1);
        assert_eq!(first.count().await, 1);
        drop(Backend::generate(&counted, request()).await.unwrap());
        assert!(Backend::generate(&counted, request()).await.is_err());
        assert_eq!(activity.running(), 0);
        assert_eq!(activity.requests(), 2);
        assert_eq!(activity.prompt_tokens(), 3);
        assert_eq!(activity.completion_tokens(), 5);
    }
}
