//! A file that others may replace at any time, read again when it has changed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use parking_lot::{Mutex, MutexGuard};

/// What was read from a file, for as long as the file is the same.
///
/// A file that cannot be read leaves what was read before: a damaged list of keys must not open a
/// server, nor lose it its aliases.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    path: PathBuf,
    seen: Mutex<Seen<T>>,
}

#[derive(Debug)]
struct Seen<T> {
    stamp: Option<Stamp>,
    value: Arc<T>,
}

/// Files are replaced by others, so the number of the file tells two quick writes apart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    size_bytes: u64,
    inode: u64,
}

impl Stamp {
    /// `None`: there is no such file.
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

impl<T: Default> Watched<T> {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            seen: Mutex::new(Seen {
                stamp: None,
                value: Arc::default(),
            }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The contents as they are now; those of a missing file are the default.
    pub(crate) fn get<E>(&self, read: impl FnOnce(&Path) -> Result<T, E>) -> Arc<T> {
        let mut seen = self.seen.lock();
        let stamp = Stamp::of(&self.path);
        if stamp != seen.stamp {
            if stamp.is_none() {
                seen.value = Arc::default();
            } else if let Ok(value) = read(&self.path) {
                seen.value = Arc::new(value);
            }
            seen.stamp = stamp;
        }
        seen.value.clone()
    }

    /// Keeps other writers of this process out until dropped.
    pub(crate) fn writing(&self) -> impl Drop + '_ {
        Writing(self.seen.lock())
    }
}

struct Writing<'a, T>(MutexGuard<'a, Seen<T>>);

impl<T> Drop for Writing<'_, T> {
    fn drop(&mut self) {
        // Whatever was written is to be read.
        self.0.stamp = None;
    }
}

/// The bytes of a file; a missing one has none.
pub(crate) fn bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_seen_and_damage_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        let watched = Watched::<u32>::new(path.clone());
        let read = |path: &Path| fs::read_to_string(path).unwrap().parse::<u32>();
        assert_eq!(*watched.get(read), 0);
        crate::state_file::write(&path, b"1").unwrap();
        assert_eq!(*watched.get(read), 1);
        crate::state_file::write(&path, b"2").unwrap();
        assert_eq!(*watched.get(read), 2);
        crate::state_file::write(&path, b"x").unwrap();
        assert_eq!(*watched.get(read), 2);
        fs::remove_file(&path).unwrap();
        assert_eq!(*watched.get(read), 0);
    }
}
