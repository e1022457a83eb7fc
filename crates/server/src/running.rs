//! The events of one client request, which may be several requests to the backend.

use std::{fmt, sync::Arc};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, try_join_all},
    stream::{BoxStream, SelectAll, select_all},
};
use macmlx_inference::{GenerateRequest, GenerationEvent, InferenceError, ModelTask};

use crate::{choice::choose, router::App};

type Item = (usize, Result<GenerationEvent, InferenceError>);

/// Generations on their way. Dropping it cancels them all.
pub(crate) struct Running {
    events: SelectAll<BoxStream<'static, Item>>,
    /// Requests that have not said `Completed`.
    open: usize,
}

impl fmt::Debug for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Running")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// A request being checked and admitted.
pub(crate) type Starting = BoxFuture<'static, Result<Running, InferenceError>>;

/// Hands all requests, which are for the same model, to the backend at once, so that they share
/// batches.
pub(crate) fn start(app: &App, requests: Vec<GenerateRequest>) -> Starting {
    let (catalog, backend) = (Arc::clone(&app.catalog), Arc::clone(&app.backend));
    async move {
        let open = requests.len();
        let Some(first) = requests.first() else {
            let events = select_all([]);
            return Ok(Running { events, open });
        };
        let model = choose(&catalog, &first.model, ModelTask::Generate).await?;
        let started = requests
            .into_iter()
            .map(|request| backend.generate(Arc::clone(&model), request));
        let streams = try_join_all(started).await?;
        let events = select_all(
            streams
                .into_iter()
                .enumerate()
                .map(|(prompt, events)| events.map(move |event| (prompt, event)).boxed()),
        );
        Ok(Running { events, open })
    }
    .boxed()
}

impl Running {
    /// The same events, shown to `look` as they pass.
    pub(crate) fn inspect(self, mut look: impl FnMut(&GenerationEvent) + Send + 'static) -> Self {
        let Self { events, open } = self;
        let events = events.inspect(move |(_, event)| {
            if let Ok(event) = event {
                look(event);
            }
        });
        Self {
            events: select_all([events.boxed()]),
            open,
        }
    }

    /// The next event and the index of its request; `None` once all are complete. A stream that
    /// ends too early is an error.
    pub(crate) async fn next(
        &mut self,
    ) -> Option<Result<(usize, GenerationEvent), InferenceError>> {
        match self.events.next().await {
            Some((prompt, Ok(event))) => {
                if matches!(event, GenerationEvent::Completed { .. }) {
                    self.open = self.open.saturating_sub(1);
                }
                Some(Ok((prompt, event)))
            }
            Some((_, Err(error))) => Some(Err(error)),
            None if self.open > 0 => {
                self.open = 0;
                Some(Err(InferenceError::Engine {
                    message: "the generation ended before it was complete".into(),
                }))
            }
            None => None,
        }
    }
}
