//! What is here of each file of a download, shared by all who write and who tell.

use std::{
    fs,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::{Mutex, MutexGuard};

use super::{
    folder::Folder,
    job::{File, FileState},
    ranges::Ranges,
    record::Journal,
};
use crate::hub::{Error, RemoteFile};

/// The files of a download.
#[derive(Debug)]
pub(super) struct Progress {
    pub files: Vec<Tracked>,
    /// Bytes that arrived in this process, useful or not.
    received: AtomicU64,
    /// Journals are written one after the other, so that the newest is the last; none once this
    /// says that the end is near.
    is_closed: Mutex<bool>,
}

/// One file.
#[derive(Debug)]
pub(super) struct Tracked {
    pub remote: RemoteFile,
    live: Mutex<Live>,
}

#[derive(Debug)]
struct Live {
    written: Ranges,
    state: FileState,
    /// Written to since the last journal.
    is_dirty: bool,
}

impl Progress {
    /// Finds out what is on the disk. Blocks.
    pub(super) fn load(folder: &Folder, files: &[RemoteFile]) -> Result<Self, Error> {
        let mut journal = folder.read_journal()?;
        let files = files
            .iter()
            .map(|remote| {
                let size_of = |path| fs::metadata(path).ok().map(|metadata| metadata.len());
                let is_done = size_of(folder.finished(remote)) == Some(remote.size_bytes);
                let mut written = journal.remove(&remote.path).unwrap_or_default();
                // Bytes that the part cannot have are not here, whatever the journal says.
                written.truncate(size_of(folder.part(remote)).unwrap_or(0));
                written.truncate(remote.size_bytes);
                if is_done {
                    written.insert(0..remote.size_bytes);
                }
                Tracked {
                    remote: remote.clone(),
                    live: Mutex::new(Live {
                        written,
                        state: if is_done {
                            FileState::Done
                        } else {
                            FileState::Waiting
                        },
                        is_dirty: false,
                    }),
                }
            })
            .collect();
        Ok(Self {
            files,
            received: AtomicU64::new(0),
            is_closed: Mutex::default(),
        })
    }

    pub(super) fn count_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that arrived in this process so far.
    pub(super) fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(super) fn done_bytes(&self) -> u64 {
        self.files.iter().map(Tracked::done_bytes).sum()
    }

    pub(super) fn remaining_bytes(&self) -> u64 {
        self.files
            .iter()
            .map(|file| file.remote.size_bytes - file.done_bytes())
            .sum()
    }

    /// All bytes are here, and some are being compared.
    pub(super) fn is_verifying(&self) -> bool {
        let states = || self.files.iter().map(|file| file.live().state);
        states().any(|state| state == FileState::Verifying)
            && states().all(|state| matches!(state, FileState::Verifying | FileState::Done))
    }

    pub(super) fn snapshot(&self) -> Vec<File> {
        self.files.iter().map(Tracked::snapshot).collect()
    }

    /// Nothing is under way any more.
    pub(super) fn come_to_rest(&self) {
        for file in &self.files {
            let mut live = file.live();
            if live.state != FileState::Done {
                live.state = FileState::Waiting;
            }
        }
    }

    /// Brings what was written onto the disk for certain, then says so in the journal. Blocks.
    pub(super) fn checkpoint(&self, folder: &Folder) -> Result<(), Error> {
        let is_closed = self.is_closed.lock();
        if *is_closed {
            return Ok(());
        }
        self.write_journal(folder)
    }

    /// Writes the last checkpoint; later ones change nothing. Blocks.
    pub(super) fn close(&self, folder: &Folder) -> Result<(), Error> {
        let mut is_closed = self.is_closed.lock();
        *is_closed = true;
        self.write_journal(folder)
    }

    fn write_journal(&self, folder: &Folder) -> Result<(), Error> {
        let mut journal = Journal::new();
        let mut dirty = Vec::new();
        for file in &self.files {
            let mut live = file.live();
            if live.state != FileState::Done && live.written.count_bytes() > 0 {
                journal.insert(file.remote.path.clone(), live.written.clone());
            }
            if std::mem::take(&mut live.is_dirty) {
                dirty.push(&file.remote);
            }
        }
        if dirty.is_empty() {
            return Ok(());
        }
        for remote in dirty {
            let path = folder.part(remote);
            match fs::File::open(&path) {
                Ok(part) => part.sync_data().map_err(Error::io(path))?,
                // Finished meanwhile, and synced for that.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(path)(error)),
            }
        }
        folder.write_journal(&journal)
    }
}

impl Tracked {
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock()
    }

    pub(super) fn state(&self) -> FileState {
        self.live().state
    }

    pub(super) fn set_state(&self, state: FileState) {
        self.live().state = state;
    }

    pub(super) fn wrote(&self, range: Range<u64>) {
        let mut live = self.live();
        live.written.insert(range);
        live.is_dirty = true;
    }

    /// Everything arrived wrongly: none of it counts.
    pub(super) fn discard(&self) {
        let mut live = self.live();
        live.written = Ranges::default();
        live.is_dirty = true;
        live.state = FileState::Waiting;
    }

    pub(super) fn missing(&self, piece: u64) -> Vec<Range<u64>> {
        self.live().written.missing(self.remote.size_bytes, piece)
    }

    fn done_bytes(&self) -> u64 {
        self.live().written.count_bytes()
    }

    fn snapshot(&self) -> File {
        let live = self.live();
        File {
            path: self.remote.path.clone(),
            size_bytes: self.remote.size_bytes,
            done_bytes: live.written.count_bytes(),
            state: live.state,
            sha256: self.remote.sha256.clone(),
        }
    }
}
