//! Keeps the state of the menu bar true: reads it once, then follows the events.

use std::time::Duration;

use futures::StreamExt as _;
use http::Method;
use macmlx_host::Body;
use sse_stream::SseStream;
use tauri::{AppHandle, Manager as _};
use tokio::sync::watch;

use super::{
    Tray,
    state::{Change, Event, State},
};
use crate::router::{Error, Router};

/// Between two looks at what changed: a menu need not be newer.
const PACE: Duration = Duration::from_millis(250);

/// Before events are asked for again.
const PAUSE: Duration = Duration::from_secs(1);

/// Follows the app until it ends.
pub(crate) async fn watch(app: AppHandle, router: Router) {
    let (state, shown) = watch::channel(State::default());
    tokio::join!(follow_always(&router, &state), show(app, shown));
}

async fn show(app: AppHandle, mut state: watch::Receiver<State>) {
    while state.changed().await.is_ok() {
        let state = state.borrow_and_update().clone();
        let handle = app.clone();
        // Menus belong to the main thread.
        let shown = app.run_on_main_thread(move || handle.state::<Tray>().show(&state));
        if shown.is_err() {
            return;
        }
        tokio::time::sleep(PACE).await;
    }
}

async fn follow_always(router: &Router, state: &watch::Sender<State>) {
    loop {
        if let Err(error) = follow(router, state).await {
            tracing::warn!(%error, "the menu bar cannot follow the server");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reads all, then applies events until they end.
async fn follow(router: &Router, state: &watch::Sender<State>) -> Result<(), Error> {
    // Asked for first, so that nothing happens unseen in between.
    let events = router.send(Method::GET, "/x/events", None).await?;
    complete(router, state, Change::Everything).await?;
    let mut events = SseStream::<Body>::new(events);
    while let Some(Ok(event)) = events.next().await {
        let Some(data) = event.data else { continue };
        let event: Event = match serde_json::from_str(&data) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, data, "an event that the menu bar does not understand");
                continue;
            }
        };
        let mut change = Change::None;
        // Also when all is as before: the system turns marks of the menu by itself.
        state.send_if_modified(|state| {
            change = state.apply(event);
            change != Change::None
        });
        complete(router, state, change).await?;
    }
    Ok(())
}

async fn complete(
    router: &Router,
    state: &watch::Sender<State>,
    change: Change,
) -> Result<(), Error> {
    let rest = match change {
        Change::None | Change::Shown => return Ok(()),
        Change::Status => None,
        Change::Everything => Some((
            router.get("/x/downloads").await?,
            router.get("/x/settings").await?,
        )),
    };
    let status = router.get("/x/status").await?;
    state.send_modify(|state| {
        state.set_status(status);
        if let Some((downloads, settings)) = rest {
            state.set_downloads(downloads);
            state.set_settings(settings);
        }
    });
    Ok(())
}
