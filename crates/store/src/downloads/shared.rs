//! What all downloads of this process share.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, broadcast};
use uuid::Uuid;

use super::{
    Change,
    entry::Entry,
    folder::Folder,
    job::{Job, State},
    options::{Options, Places},
    progress::Progress,
    transfer::blocking,
};
use crate::hub::{Connection, Error};

/// Changes that a slow listener may lag behind.
const BACKLOG: usize = 1024;

pub(super) struct Shared {
    pub places: Places,
    pub connection: Arc<Connection>,
    pub options: Options,
    pub connections: Arc<Semaphore>,
    /// Places of downloads that are under way.
    pub slots: Semaphore,
    /// Places of downloads that ask for their files.
    pub listings: Semaphore,
    jobs: Mutex<BTreeMap<Uuid, Entry>>,
    changes: broadcast::Sender<Change>,
    /// Held while a download is started, paused, resumed or cancelled.
    pub commands: tokio::sync::Mutex<()>,
}

impl Shared {
    pub(super) fn new(places: Places, connection: Arc<Connection>, options: Options) -> Self {
        Self {
            places,
            connection,
            connections: Arc::new(Semaphore::new(options.connections)),
            slots: Semaphore::new(options.jobs),
            listings: Semaphore::new(options.connections),
            options,
            jobs: Mutex::default(),
            changes: broadcast::channel(BACKLOG).0,
            commands: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn jobs(&self) -> MutexGuard<'_, BTreeMap<Uuid, Entry>> {
        self.jobs.lock()
    }

    /// Where a model, `owner/name`, will be.
    pub(super) fn destination(&self, model: &str) -> PathBuf {
        self.places.models.join(model)
    }

    pub(super) fn folder(&self, model: &str) -> Folder {
        Folder::of(&self.places.downloads, model)
    }

    pub(super) fn read<T>(&self, id: Uuid, look: impl FnOnce(&Entry) -> T) -> Option<T> {
        self.jobs().get(&id).map(look)
    }

    /// Changes an entry and tells everybody.
    pub(super) fn change<T>(&self, id: Uuid, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let mut jobs = self.jobs();
        let entry = jobs.get_mut(&id)?;
        let result = change(entry);
        // The send fails when there is no receiver, which is fine.
        let _ = self.changes.send(Change::Job(Box::new(entry.job())));
        Some(result)
    }

    pub(super) fn insert(&self, entry: Entry) {
        let mut jobs = self.jobs();
        let _ = self.changes.send(Change::Job(Box::new(entry.job())));
        jobs.insert(entry.record.id, entry);
    }

    pub(super) fn forget(&self, id: Uuid) {
        let mut jobs = self.jobs();
        if jobs.remove(&id).is_some() {
            let _ = self.changes.send(Change::Removed(id));
        }
    }

    /// Takes the oldest of the finished downloads out of the list, where it has too many.
    pub(super) fn forget_done(&self) {
        let mut done: Vec<_> = self
            .jobs()
            .values()
            .filter(|entry| entry.record.state == State::Done)
            .map(|entry| (entry.record.updated, entry.record.id))
            .collect();
        done.sort_unstable();
        let surplus = done.len().saturating_sub(self.options.remembered);
        for (_, id) in done.into_iter().take(surplus) {
            self.forget(id);
        }
    }

    /// A listener, and what it would have heard last of one download.
    pub(super) fn listen(&self, id: Uuid) -> Option<(broadcast::Receiver<Change>, Job)> {
        // Under the lock nothing is told between the two.
        let jobs = self.jobs();
        let job = jobs.get(&id)?.job();
        Some((self.changes.subscribe(), job))
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Writes `job.json`.
    pub(super) async fn save(&self, id: Uuid) -> Result<(), Error> {
        let Some(record) = self.read(id, |entry| entry.record.clone()) else {
            return Ok(());
        };
        let folder = self.folder(&record.model);
        blocking(move || folder.write_record(&record)).await
    }

    /// Bytes that the other downloads under way still lack.
    pub(super) fn promised_bytes(&self, except: Uuid) -> u64 {
        self.jobs()
            .iter()
            .filter(|(id, entry)| **id != except && entry.record.state == State::Downloading)
            .filter_map(|(_, entry)| Some(entry.progress.as_ref()?.remaining_bytes()))
            .sum()
    }

    /// The download that a folder holds, unless another process is at work on it. Blocks.
    pub(super) fn find(&self, folder: &Folder) -> Result<Option<Entry>, Error> {
        let Some(mut record) = folder.read_record()? else {
            return Ok(None);
        };
        if self.folder(&record.model) != *folder || folder.is_held_elsewhere(&record) {
            return Ok(None);
        }
        if self.destination(&record.model).exists() {
            // The end came between the last two steps.
            let _lock = folder.lock(&record.model)?;
            folder.remove()?;
            return Ok(None);
        }
        let was_interrupted = !record.state.is_at_rest();
        if was_interrupted {
            record.state = State::Paused;
            record.holder = None;
        }
        let progress = if record.files.is_empty() {
            None
        } else {
            Some(Arc::new(Progress::load(folder, &record.files)?))
        };
        Ok(Some(Entry {
            progress,
            was_interrupted,
            ..Entry::new(record)
        }))
    }
}
