//! The settings as they are now, for the whole application, also when another process changes them.

use std::{fmt, path::Path, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{Error, Home, SETTINGS, Settings, file, watched::Watched};

/// A function that is called with the settings after each change.
type Watcher = Box<dyn Fn(&Settings) + Send + Sync>;

/// Settings that are read again when their file has changed. What other programs write is seen at
/// the next question; what is changed here is in the file before the call returns.
pub struct LiveSettings {
    file: Watched<Settings>,
    at_start: Arc<Settings>,
    last: Mutex<Arc<Settings>>,
    watchers: Mutex<Vec<Watcher>>,
}

impl fmt::Debug for LiveSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LiveSettings")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl LiveSettings {
    /// Reads the file. A missing or damaged one means defaults.
    pub fn new(home: &Home) -> Self {
        let file = Watched::new(home.settings_file());
        let at_start = file.get(file::read);
        Self {
            last: Mutex::new(at_start.clone()),
            file,
            at_start,
            watchers: Mutex::default(),
        }
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The settings now. Asks the disk for no more than whether the file is the same.
    pub fn get(&self) -> Arc<Settings> {
        let now = self.file.get(file::read);
        let is_new = {
            let mut last = self.last.lock();
            let is_new = *last != now;
            *last = now.clone();
            is_new
        };
        if is_new {
            let watchers = self.watchers.lock();
            for watcher in &*watchers {
                watcher(&now);
            }
        }
        now
    }

    /// Applies a JSON merge patch (RFC 7396: `null` resets to the default) and writes the file.
    /// Blocks while another process writes it.
    pub fn patch(&self, changes: &Value) -> Result<Arc<Settings>, Error> {
        {
            let _writing = self.file.writing();
            file::patch(self.path(), changes)?;
        }
        Ok(self.get())
    }

    /// What is wrong with the file, in sentences for a person. Changes nothing.
    pub fn warnings(&self) -> Vec<String> {
        file::warnings(self.path())
    }

    /// Settings that have changed since the start and count only after the next one.
    pub fn restart_required(&self) -> Vec<String> {
        let (then, now) = (as_json(&self.at_start), as_json(&self.get()));
        SETTINGS
            .iter()
            .filter(|row| row.is_read_at_start && then[row.key] != now[row.key])
            .map(|row| row.key.to_owned())
            .collect()
    }

    /// Calls `watcher` when a change is noticed, also one of another process. `watcher` must not
    /// ask for the settings itself.
    pub fn watch(&self, watcher: impl Fn(&Settings) + Send + Sync + 'static) {
        self.watchers.lock().push(Box::new(watcher));
    }
}

fn as_json(settings: &Settings) -> Value {
    serde_json::to_value(settings).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use serde_json::json;

    use super::*;

    #[test]
    fn changes_of_everyone_are_seen_and_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let live = LiveSettings::new(&home);
        let told = Arc::new(AtomicUsize::new(0));
        let counter = told.clone();
        live.watch(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(*live.get(), Settings::default());
        let settings = live.patch(&json!({"serverPort": 9000})).unwrap();
        assert_eq!(settings.server_port, 9000);
        assert_eq!(told.load(Ordering::SeqCst), 1);
        crate::patch(&home.settings_file(), &json!({"serverPort": 9001})).unwrap();
        assert_eq!(live.get().server_port, 9001);
        assert_eq!(live.get().server_port, 9001);
        assert_eq!(told.load(Ordering::SeqCst), 2);
        // Something another program keeps there is no change.
        crate::patch(&home.settings_file(), &json!({"theirs": 1})).unwrap();
        live.get();
        assert_eq!(told.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn what_counts_after_a_restart_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let live = LiveSettings::new(&Home::at(folder.path()));
        live.patch(&json!({"maxBatchSize": 2, "theme": "dark", "modelDirectory": "/m"}))
            .unwrap();
        assert_eq!(live.restart_required(), ["modelDirectory", "maxBatchSize"]);
        live.patch(&json!({"maxBatchSize": null, "modelDirectory": null}))
            .unwrap();
        assert!(live.restart_required().is_empty());
    }

    #[test]
    fn two_writers_lose_nothing_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let write = |name: &str| {
            let live = LiveSettings::new(&home);
            for number in 0..10 {
                live.patch(&json!({name: {number.to_string(): number}}))
                    .unwrap();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| write("one"));
            scope.spawn(|| write("other"));
        });
        let written: Value =
            serde_json::from_slice(&fs::read(home.settings_file()).unwrap()).unwrap();
        for name in ["one", "other"] {
            assert_eq!(written[name].as_object().unwrap().len(), 10);
        }
    }
}
