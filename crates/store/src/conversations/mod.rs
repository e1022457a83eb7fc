//! Conversations on disk: one file each, in the form that macMLX has always used.

mod conversation;
mod document;
mod index;
mod stamp;

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use macmlx_settings::state_file;
use parking_lot::Mutex;
use uuid::Uuid;

pub use conversation::{
    AnswerTimings, CallState, Conversation, Ending, Image, Message, Role, TokenCounts, ToolCall,
};
pub use index::{Damaged, List, Summary};

use index::Index;

/// A conversation that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no conversation {id}; it may have been deleted elsewhere")]
    NotFound { id: Uuid },
    #[error("there is a conversation {id} already")]
    Exists { id: Uuid },
    #[error("{} cannot be read ({reason}); repair it or move it away", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("cannot access {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The conversations of a folder. Calls block on the disk.
///
/// Edits of one conversation come one after the other; of two processes, the last that writes a
/// file wins.
#[derive(Debug)]
pub struct Conversations {
    folder: PathBuf,
    index: Mutex<Index>,
    editing: Mutex<HashMap<Uuid, Weak<Mutex<()>>>>,
}

impl Conversations {
    /// Those of a folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            index: Mutex::default(),
            editing: Mutex::default(),
        }
    }

    /// What there is, newest first: all, or those that have every word of `search` in their title
    /// or messages, whatever the case.
    pub fn list(&self, search: Option<&str>) -> Result<List, Error> {
        let mut list = self.index.lock().list(&self.folder)?;
        let words: Vec<String> = search
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_lowercase)
            .collect();
        if !words.is_empty() {
            list.conversations
                .retain(|summary| self.get(summary.id).is_ok_and(|found| found.has(&words)));
        }
        Ok(list)
    }

    pub fn get(&self, id: Uuid) -> Result<Conversation, Error> {
        let path = self.path(id);
        match document::read(&path) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Err(Error::NotFound { id })
            }
            // The name of the file is what it is found by.
            read => read.map(|conversation| Conversation { id, ..conversation }),
        }
    }

    /// Stores a new conversation.
    pub fn create(&self, conversation: &Conversation) -> Result<(), Error> {
        let id = conversation.id;
        let editing = self.editing(id);
        let _editing = editing.lock();
        let path = self.path(id);
        if path.exists() {
            return Err(Error::Exists { id });
        }
        document::write(&path, conversation)
    }

    /// Edits a conversation, unless `edit` refuses, and returns what it is now. The time of its last
    /// change becomes now.
    pub fn edit<E: From<Error>>(
        &self,
        id: Uuid,
        edit: impl FnOnce(&mut Conversation) -> Result<(), E>,
    ) -> Result<Conversation, E> {
        let editing = self.editing(id);
        let _editing = editing.lock();
        let mut conversation = self.get(id)?;
        edit(&mut conversation)?;
        conversation.updated_at = stamp::now().max(conversation.updated_at);
        document::write(&self.path(id), &conversation)?;
        Ok(conversation)
    }

    /// Deletes a conversation and the images that were kept for it.
    pub fn remove(&self, id: Uuid) -> Result<(), Error> {
        let editing = self.editing(id);
        let _editing = editing.lock();
        let path = self.path(id);
        fs::remove_file(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound { id },
            _ => Error::Io { path, source },
        })?;
        for folder in names(id).map(|name| self.folder.join(name)) {
            match fs::remove_dir_all(&folder) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::Io {
                        path: folder,
                        source,
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The file of a conversation, or where it is to be.
    fn path(&self, id: Uuid) -> PathBuf {
        let [usual, other] = names(id).map(|name| self.folder.join(name + ".json"));
        if !usual.exists() && other.exists() {
            other
        } else {
            usual
        }
    }

    /// The lock of a conversation's file.
    fn editing(&self, id: Uuid) -> Arc<Mutex<()>> {
        let mut editing = self.editing.lock();
        editing.retain(|_, held| held.strong_count() > 0);
        if let Some(held) = editing.get(&id).and_then(Weak::upgrade) {
            return held;
        }
        let fresh = Arc::default();
        editing.insert(id, Arc::downgrade(&fresh));
        fresh
    }
}

/// How a conversation's file may be called, without its ending: Apple writes UUIDs in upper case.
fn names(id: Uuid) -> [String; 2] {
    let lower = id.hyphenated().to_string();
    [lower.to_uppercase(), lower]
}

/// The id that a file is called by.
fn id_of(path: &Path) -> Option<Uuid> {
    let is_json = path.extension().is_some_and(|end| end == "json");
    let stem = path.file_stem()?.to_str()?;
    is_json.then(|| Uuid::try_parse(stem).ok()).flatten()
}

#[cfg(test)]
mod tests;
