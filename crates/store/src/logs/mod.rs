//! What was noted while the application ran: the last entries in memory, all of them in a file a day.

mod entry;
mod files;
mod page;

use std::{
    collections::VecDeque,
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
};

use parking_lot::Mutex;

pub use entry::{Category, Entry, Level, NewEntry};
pub use page::{Page, Query};

/// Entries that are kept in memory.
const CAPACITY: usize = 5_000;

/// Says after how many days files are removed.
type Retention = Box<dyn Fn() -> u32 + Send>;

/// Told about each new entry.
type Watcher = Box<dyn Fn(&Entry) + Send + Sync>;

/// The log of one application.
#[derive(Default)]
pub struct Logs {
    ring: Mutex<Ring>,
    writer: Mutex<Option<Writer>>,
    watcher: Mutex<Option<Arc<Watcher>>>,
}

#[derive(Default)]
struct Ring {
    entries: VecDeque<Arc<Entry>>,
    last_id: u64,
}

/// The thread that writes.
struct Writer {
    folder: PathBuf,
    messages: mpsc::Sender<Message>,
    thread: std::thread::JoinHandle<()>,
}

enum Message {
    Entry(Arc<Entry>),
    /// Removes what is there.
    Clear(mpsc::Sender<io::Result<()>>),
}

impl fmt::Debug for Logs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Logs").finish_non_exhaustive()
    }
}

impl Logs {
    /// Begins to write entries also into `folder`, and the last ones that are there belong
    /// to this log, too. Files older than `retention` days go.
    pub fn keep_in(
        &self,
        folder: &Path,
        retention: impl Fn() -> u32 + Send + 'static,
    ) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let before = files::last_entries(folder, CAPACITY);
        {
            let mut ring = self.ring.lock();
            let since = std::mem::take(&mut *ring);
            for entry in before {
                ring.push(entry);
            }
            for entry in since.entries {
                ring.push(NewEntry::from(&*entry));
            }
        }
        let (messages, received) = mpsc::channel();
        let thread = {
            let folder = folder.to_path_buf();
            let retention: Retention = Box::new(retention);
            std::thread::Builder::new()
                .name("logs".into())
                .spawn(move || files::write(&folder, &retention, &received))?
        };
        *self.writer.lock() = Some(Writer {
            folder: folder.to_path_buf(),
            messages,
            thread,
        });
        Ok(())
    }

    /// Calls a function for each new entry. The function must log nothing itself.
    pub fn watch(&self, watcher: impl Fn(&Entry) + Send + Sync + 'static) {
        *self.watcher.lock() = Some(Arc::new(Box::new(watcher)));
    }

    /// Notes something. Never waits for the disk.
    pub fn note(&self, new: NewEntry) {
        let entry = self.ring.lock().push(new);
        if let Some(writer) = &*self.writer.lock() {
            // The thread ends with the log only.
            let _ = writer.messages.send(Message::Entry(entry.clone()));
        }
        let watcher = self.watcher.lock().clone();
        if let Some(watcher) = watcher {
            watcher(&entry);
        }
    }

    /// Entries of the memory that the query asks for, oldest first.
    pub fn find(&self, query: &Query) -> Page {
        page::find(self.ring.lock().entries.iter(), query)
    }

    /// Forgets everything, in memory and on disk. Waits for the disk.
    pub fn clear(&self) -> io::Result<()> {
        self.ring.lock().entries.clear();
        let cleared = match &*self.writer.lock() {
            Some(writer) => {
                let (done, cleared) = mpsc::channel();
                let _ = writer.messages.send(Message::Clear(done));
                cleared
            }
            None => return Ok(()),
        };
        cleared.recv().unwrap_or(Ok(()))
    }

    /// Where the files are, once there are any.
    pub fn folder(&self) -> Option<PathBuf> {
        Some(self.writer.lock().as_ref()?.folder.clone())
    }

    /// Ends the writing; what was noted before is in the file then.
    pub fn close(&self) {
        let writer = self.writer.lock().take();
        if let Some(Writer {
            messages, thread, ..
        }) = writer
        {
            drop(messages);
            // It only fails by panicking, which its own thread has told.
            let _ = thread.join();
        }
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.close();
    }
}

impl Ring {
    fn push(&mut self, new: NewEntry) -> Arc<Entry> {
        self.last_id += 1;
        let entry = Arc::new(new.with_id(self.last_id));
        if self.entries.len() == CAPACITY {
            self.entries.pop_front();
        }
        self.entries.push_back(entry.clone());
        entry
    }
}

#[cfg(test)]
mod tests;
