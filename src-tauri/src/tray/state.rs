//! What the menu bar shows, as `/x/status`, `/x/downloads` and `/x/events` tell it.

use std::collections::BTreeSet;

use serde::Deserialize;

/// Everything that icon and menu depend on.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct State {
    /// Nothing is known before the first status.
    pub(super) is_started: bool,
    pub(super) door: Door,
    pub(super) models: Vec<Model>,
    pub(super) loading: BTreeSet<String>,
    /// The model whose load failed last, until the next one begins.
    pub(super) failed: Option<String>,
    pub(super) throughput: Throughput,
    pub(super) downloads: Vec<Download>,
    /// `language` of the settings.
    pub(crate) language: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Door {
    pub(super) state: DoorState,
    pub(super) url: Option<String>,
    pub(super) error: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DoorState {
    Open,
    #[default]
    Closed,
    Failed,
}

/// A loaded model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Model {
    pub(super) id: String,
    pub(super) memory_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(crate) struct Throughput {
    pub(super) decode_tokens_per_second: f64,
    pub(super) running: u64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Download {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) state: DownloadState,
    pub(super) total_bytes: Option<u64>,
    pub(super) done_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DownloadState {
    Queued,
    Listing,
    Downloading,
    Verifying,
    Paused,
    Done,
    Failed,
}

/// The part of `GET /x/status` that is shown.
#[derive(Debug, Deserialize)]
pub(crate) struct Status {
    door: Door,
    models: Vec<Model>,
    throughput: Throughput,
    pub(crate) requests_running: u64,
}

/// `GET /x/downloads`.
#[derive(Debug, Deserialize)]
pub(crate) struct Downloads {
    jobs: Vec<Download>,
}

/// The part of `GET /x/settings` that matters here.
#[derive(Debug, Deserialize)]
pub(crate) struct SettingsReply {
    settings: Settings,
}

#[derive(Debug, Deserialize)]
struct Settings {
    language: Option<String>,
}

/// The events that change what is shown.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event {
    Door {
        door: Door,
    },
    Model {
        id: String,
        state: ModelState,
    },
    Download {
        job: Download,
    },
    DownloadRemoved {
        id: String,
    },
    Throughput {
        throughput: Throughput,
    },
    SettingsChanged,
    /// Events were missed.
    Lagged,
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModelState {
    Loading,
    Loaded,
    Unloaded,
    Failed,
}

/// What an event leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing that is shown.
    None,
    Shown,
    /// What is loaded, and how large it is, must be asked for.
    Status,
    /// All must be asked for.
    Everything,
}

impl Model {
    /// The id without its owner.
    pub(super) fn name(&self) -> &str {
        self.id.rsplit('/').next().unwrap_or(&self.id)
    }
}

impl State {
    pub(crate) fn set_status(&mut self, status: Status) {
        self.is_started = true;
        self.door = status.door;
        self.models = status.models;
        self.throughput = status.throughput;
    }

    pub(crate) fn set_downloads(&mut self, downloads: Downloads) {
        self.downloads = downloads.jobs;
    }

    pub(crate) fn set_settings(&mut self, reply: SettingsReply) {
        self.language = reply.settings.language;
    }

    pub(crate) fn apply(&mut self, event: Event) -> Change {
        match event {
            Event::Door { door } => self.door = door,
            Event::Model { id, state } => return self.apply_model(id, state),
            Event::Download { job } => {
                match self.downloads.iter_mut().find(|known| known.id == job.id) {
                    Some(known) => *known = job,
                    None => self.downloads.push(job),
                }
            }
            Event::DownloadRemoved { id } => self.downloads.retain(|known| known.id != id),
            Event::Throughput { throughput } => self.throughput = throughput,
            Event::SettingsChanged | Event::Lagged => return Change::Everything,
            Event::Other => return Change::None,
        }
        Change::Shown
    }

    fn apply_model(&mut self, id: String, state: ModelState) -> Change {
        self.loading.remove(&id);
        match state {
            ModelState::Loading => {
                self.failed = None;
                self.loading.insert(id);
            }
            ModelState::Failed => self.failed = Some(id),
            ModelState::Loaded | ModelState::Unloaded => {}
        }
        Change::Status
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in crate::tray) fn event(event: serde_json::Value) -> Event {
        serde_json::from_value(event).unwrap()
    }

    pub(in crate::tray) fn started() -> State {
        let mut state = State::default();
        state.set_status(
            serde_json::from_value(json!({
                "version": "0.1.0",
                "door": {
                    "state": "open", "url": "http://127.0.0.1:8000",
                    "address": "127.0.0.1:8000", "wanted_port": 8000,
                    "needs_api_key": false, "error": null,
                },
                "models": [{ "id": "a/b", "memory_bytes": 1_500_000_000, "weights": "q4" }],
                "requests_running": 0,
                "throughput": {
                    "decode_tokens_per_second": 0.0, "prompt_tokens_per_second": 0.0, "running": 0,
                },
            }))
            .unwrap(),
        );
        state
    }

    fn job(id: &str, state: &str) -> serde_json::Value {
        json!({
            "id": id, "model": "a/b", "state": state, "total_bytes": 200, "done_bytes": 50,
            "bytes_per_second": 1.0, "files": [],
        })
    }

    #[test]
    fn loads_are_followed_to_their_end() {
        let mut state = started();
        let model = |state: &str| {
            event(json!({ "type": "model", "id": "c", "state": state, "error": null }))
        };
        assert_eq!(state.apply(model("loading")), Change::Status);
        assert!(state.loading.contains("c"));
        state.apply(model("failed"));
        assert!(state.loading.is_empty());
        assert_eq!(state.failed.as_deref(), Some("c"));
        state.apply(model("loading"));
        assert_eq!(state.failed, None);
        state.apply(model("loaded"));
        assert!(state.loading.is_empty());
    }

    #[test]
    fn downloads_come_change_and_go() {
        let mut state = started();
        let download = |id, state| event(json!({ "type": "download", "job": job(id, state) }));
        state.apply(download("1", "downloading"));
        state.apply(download("2", "queued"));
        state.apply(download("1", "paused"));
        assert_eq!(state.downloads.len(), 2);
        assert_eq!(state.downloads[0].state, DownloadState::Paused);
        state.apply(event(json!({ "type": "download_removed", "id": "1" })));
        assert_eq!(state.downloads.len(), 1);
    }

    #[test]
    fn other_events_change_nothing() {
        let mut state = started();
        let before = state.clone();
        let log = json!({ "type": "log", "entry": { "id": 1, "message": "m" } });
        assert_eq!(state.apply(event(log)), Change::None);
        assert_eq!(state, before);
        let lagged = event(json!({ "type": "lagged" }));
        assert_eq!(state.apply(lagged), Change::Everything);
    }
}
