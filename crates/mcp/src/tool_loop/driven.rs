//! A stream of events that a future makes.

use std::future::ready;

use futures::{FutureExt, SinkExt, StreamExt, channel::mpsc, stream};
use macmlx_inference::{EventStream, GenerationEvent, InferenceError};

/// Where the future puts its events. It goes on once they are taken.
pub(super) struct Events(mpsc::Sender<Result<GenerationEvent, InferenceError>>);

impl Events {
    pub(super) async fn send(&mut self, event: GenerationEvent) {
        // The receiver lives as long as the future: they are one stream.
        let _ = self.0.send(Ok(event)).await;
    }

    pub(super) async fn error(&mut self, error: InferenceError) {
        let _ = self.0.send(Err(error)).await;
    }
}

/// The events of `make`, which runs only while the stream is polled and is dropped with it.
pub(super) fn stream<F>(make: impl FnOnce(Events) -> F) -> EventStream
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(0);
    let making = make(Events(sender)).into_stream().map(|()| None);
    stream::select(receiver.map(Some), making)
        .filter_map(ready)
        .boxed()
}
