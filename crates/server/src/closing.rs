//! Tells running answers that the door they came through is being closed.

use axum::http::Extensions;
use tokio::sync::watch;

/// Attached to each request that came through a listener; others are never closed on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closing(Option<watch::Receiver<bool>>);

impl Closing {
    /// The end that closes, and what requests carry.
    pub(crate) fn pair() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(Some(receiver)))
    }

    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Resolves when answers must end.
    pub(crate) async fn closed(&mut self) {
        if let Some(receiver) = &mut self.0
            && receiver.wait_for(|is_closed| *is_closed).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
