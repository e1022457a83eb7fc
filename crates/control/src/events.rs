//! The events of the application, sent to all clients that watch.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    response::sse::{self, KeepAlive, Sse},
};
use futures::{Stream, StreamExt, future, stream};
use macmlx_store::{downloads::Job, logs::Entry};
use serde::Serialize;
use tokio::sync::broadcast::{self, error::RecvError};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Throughput, door::DoorState, mcp::McpServer};

/// Events that a slow watcher may fall behind before it has to read everything anew.
const CAPACITY: usize = 1024;

/// Longest silence of the stream.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Something that changed. Watchers read the routes again that show it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The TCP door opened, closed or failed.
    Door {
        door: DoorState,
    },
    /// A model in memory, or on its way there or away.
    Model {
        id: String,
        state: ModelState,
        /// Why it failed.
        #[schema(required)]
        error: Option<String>,
    },
    /// Each second while something runs, and once when nothing does any more.
    Throughput {
        throughput: Throughput,
    },
    Log {
        entry: Entry,
    },
    /// A download is new or has changed.
    Download {
        job: Box<Job>,
    },
    DownloadRemoved {
        id: String,
    },
    /// Models on disk came, went or changed.
    ModelsChanged,
    ConversationChanged {
        id: String,
    },
    ConversationRemoved {
        id: String,
    },
    SettingsChanged,
    KeysChanged,
    /// An MCP server came or changed.
    McpServer {
        server: McpServer,
    },
    McpServerRemoved {
        name: String,
    },
    /// Several MCP servers may have changed, or what is wrong with mcp.json.
    McpChanged,
    /// The watcher was too slow; everything may have changed.
    Lagged,
}

/// A change of a model in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModelState {
    Loading,
    Loaded,
    Unloaded,
    /// It could not be loaded.
    Failed,
}

/// Where events are told, and heard.
#[derive(Debug, Clone)]
pub struct Events(broadcast::Sender<Event>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }
}

impl Events {
    pub fn publish(&self, event: Event) {
        // The send fails when no client is watching, which is fine.
        let _ = self.0.send(event);
    }

    /// Returns the events from now on. The stream ends when the last publisher is gone.
    pub fn subscribe(&self) -> impl Stream<Item = Event> + Send + use<> {
        stream::unfold(self.0.subscribe(), |mut receiver| async move {
            match receiver.recv().await {
                Ok(event) => Some((event, receiver)),
                Err(RecvError::Lagged(_)) => Some((Event::Lagged, receiver)),
                Err(RecvError::Closed) => None,
            }
        })
    }
}

/// `/x/events`.
pub fn routes() -> OpenApiRouter<Arc<Events>> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Watch what changes: server-sent events until the watcher leaves.
#[utoipa::path(
    get,
    path = "/x/events",
    responses((status = 200, body = Event, content_type = "text/event-stream"))
)]
async fn events(
    State(events): State<Arc<Events>>,
) -> Sse<impl Stream<Item = Result<sse::Event, Infallible>>> {
    sse(events.subscribe())
}

/// A stream of values as server-sent events, with signs of life between them.
pub(crate) fn sse<T: Serialize>(
    values: impl Stream<Item = T> + Send + 'static,
) -> Sse<impl Stream<Item = Result<sse::Event, Infallible>> + Send> {
    let frames = values.filter_map(|value| {
        let frame = sse::Event::default().json_data(&value);
        if let Err(error) = &frame {
            tracing::error!(%error, "an event cannot be written as JSON");
        }
        future::ready(frame.ok().map(Ok))
    });
    Sse::new(frames).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everyone_hears_what_comes_after_they_came() {
        let events = Events::default();
        events.publish(Event::KeysChanged);
        let mut watcher = Box::pin(events.subscribe());
        events.publish(Event::ModelsChanged);
        assert!(matches!(watcher.next().await, Some(Event::ModelsChanged)));
        for _ in 0..=CAPACITY {
            events.publish(Event::SettingsChanged);
        }
        assert!(matches!(watcher.next().await, Some(Event::Lagged)));
        assert!(matches!(watcher.next().await, Some(Event::SettingsChanged)));
    }
}
