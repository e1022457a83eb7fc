//! What a list shows of each conversation, read again only when its file has changed.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use jiff::Timestamp;
use uuid::Uuid;

use super::{Conversation, Error, document, id_of};

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub id: Uuid,
    pub title: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub model_id: Option<String>,
    pub message_count: usize,
    /// The last words said.
    pub preview: String,
}

/// A file that holds no conversation, though it is called like one. It is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    pub path: PathBuf,
    pub reason: String,
}

/// The conversations of a folder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct List {
    /// Newest first.
    pub conversations: Vec<Summary>,
    pub damaged: Vec<Damaged>,
}

/// What was read of which file.
#[derive(Debug, Default)]
pub(super) struct Index {
    files: HashMap<PathBuf, (Stamp, Entry)>,
}

#[derive(Debug, Clone)]
enum Entry {
    Readable(Summary),
    Damaged(Damaged),
}

/// What differs once a file was written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    size_bytes: u64,
    /// Files are replaced, so that two quick writes differ here.
    inode: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Self {
            modified: metadata.modified().ok(),
            size_bytes: metadata.len(),
            inode,
        })
    }
}

impl Index {
    pub(super) fn list(&mut self, folder: &Path) -> Result<List, Error> {
        let paths = match fs::read_dir(folder) {
            Ok(entries) => entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect(),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => {
                return Err(Error::Io {
                    path: folder.into(),
                    source,
                });
            }
        };
        let mut before = std::mem::take(&mut self.files);
        let mut list = List::default();
        for path in paths {
            let (Some(id), Some(stamp)) = (id_of(&path), Stamp::of(&path)) else {
                continue;
            };
            let entry = match before.remove(&path) {
                Some((known, entry)) if known == stamp => entry,
                _ => read(&path, id),
            };
            match &entry {
                Entry::Readable(summary) => list.conversations.push(summary.clone()),
                Entry::Damaged(damaged) => list.damaged.push(damaged.clone()),
            }
            self.files.insert(path, (stamp, entry));
        }
        list.conversations
            .sort_by_key(|summary| (std::cmp::Reverse(summary.updated_at), summary.id));
        list.damaged.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(list)
    }
}

fn read(path: &Path, id: Uuid) -> Entry {
    match document::read(path) {
        Ok(conversation) => Entry::Readable(summary(id, &conversation)),
        Err(error) => {
            // Told once for each state of the file.
            tracing::warn!(%error, "a conversation is left out");
            let reason = match error {
                Error::Unreadable { reason, .. } => reason,
                error => error.to_string(),
            };
            Entry::Damaged(Damaged {
                path: path.into(),
                reason,
            })
        }
    }
}

fn summary(id: Uuid, conversation: &Conversation) -> Summary {
    Summary {
        id,
        title: conversation.title.clone(),
        created_at: conversation.created_at,
        updated_at: conversation.updated_at,
        model_id: conversation.model_id.clone(),
        message_count: conversation.messages.len(),
        preview: conversation.preview(),
    }
}
