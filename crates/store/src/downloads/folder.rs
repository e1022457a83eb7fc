//! The folder of one unfinished download: `downloads/owner%2Fname/`.
//!
//! macMLX of old keeps `current-file.txt` and `resume.dat` in folders of the same name: what is not
//! ours is neither read nor removed. The model's files are in `files/`, unfinished ones with `.part`
//! at their end.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use macmlx_settings::state_file;
use serde_json::json;

use super::{
    place::into_place,
    record::{self, Journal, Record},
};
use crate::hub::{Error, RemoteFile};

/// What a finished model's folder says about where it comes from, as macMLX of old writes it.
const META: &str = ".macmlx-meta.json";

/// The folder of a download; it need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder(PathBuf);

/// Held by the process that downloads.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Folder {
    /// The folder of a model, `owner/name`.
    pub(super) fn of(downloads: &Path, model: &str) -> Self {
        Self(downloads.join(model.replace('/', "%2F")))
    }

    /// All folders in which a download of ours is.
    pub(super) fn all(downloads: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(downloads) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut folders = Vec::new();
        for entry in entries {
            let folder = Self(entry?.path());
            if folder.job().is_file() {
                folders.push(folder);
            }
        }
        folders.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(folders)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn job(&self) -> PathBuf {
        self.0.join("job.json")
    }

    fn journal(&self) -> PathBuf {
        self.0.join("ranges.json")
    }

    fn lock_file(&self) -> PathBuf {
        self.0.join(".lock")
    }

    fn files(&self) -> PathBuf {
        self.0.join("files")
    }

    pub(super) fn finished(&self, file: &RemoteFile) -> PathBuf {
        self.files().join(&file.path)
    }

    pub(super) fn part(&self, file: &RemoteFile) -> PathBuf {
        self.files().join(format!("{}.part", file.path))
    }

    pub(super) fn read_record(&self) -> Result<Option<Record>, Error> {
        record::read(&self.job()).map_err(Error::io(self.job()))
    }

    pub(super) fn write_record(&self, record: &Record) -> Result<(), Error> {
        record::write(&self.job(), record).map_err(Error::io(self.job()))
    }

    /// Bytes that are here, of files of which some are missing.
    pub(super) fn read_journal(&self) -> Result<Journal, Error> {
        let journal = record::read(&self.journal()).map_err(Error::io(self.journal()))?;
        Ok(journal.unwrap_or_default())
    }

    pub(super) fn write_journal(&self, journal: &Journal) -> Result<(), Error> {
        record::write(&self.journal(), journal).map_err(Error::io(self.journal()))
    }

    /// Locks the folder: no other process downloads here while the lock lives.
    pub(super) fn lock(&self, model: &str) -> Result<Lock, Error> {
        fs::create_dir_all(&self.0).map_err(Error::io(&self.0))?;
        let path = self.lock_file();
        loop {
            let file = File::create(&path).map_err(Error::io(&path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Error::Busy(model.to_owned())),
                Err(TryLockError::Error(error)) => return Err(Error::io(path)(error)),
            }
            // A process that finished may have removed the file between our opening and locking it.
            let locked = file.metadata().map_err(Error::io(&path))?;
            match fs::metadata(&path) {
                Ok(there) if (there.dev(), there.ino()) == (locked.dev(), locked.ino()) => {
                    return Ok(Lock { _file: file });
                }
                _ => fs::create_dir_all(&self.0).map_err(Error::io(&self.0))?,
            }
        }
    }

    /// Whether another process is at work here, as its record and its lock say.
    pub(super) fn is_held_elsewhere(&self, record: &Record) -> bool {
        record.may_be_held_elsewhere() && matches!(self.lock(&record.model), Err(Error::Busy(_)))
    }

    /// Makes room for files, keeping those that are the same as in the record before; a file is
    /// its path, size and digest, so files of two commits cannot mix.
    pub(super) fn prepare(&self, before: &[RemoteFile], now: &[RemoteFile]) -> Result<(), Error> {
        let files = self.files();
        fs::create_dir_all(&files).map_err(Error::io(&files))?;
        let kept: Vec<PathBuf> = now
            .iter()
            .filter(|file| before.contains(file))
            .flat_map(|file| [self.finished(file), self.part(file)])
            .collect();
        clear(&files, &kept)?;
        for file in now {
            let path = self.finished(file);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(Error::io(parent))?;
            }
        }
        // Before a new part is made under a name that the journal knows.
        let mut journal = self.read_journal()?;
        let known = journal.len();
        journal.retain(|path, _| {
            now.iter()
                .any(|file| file.path == *path && before.contains(file))
        });
        if journal.len() < known {
            self.write_journal(&journal)?;
        }
        Ok(())
    }

    /// Turns the finished files into the model's folder, and removes what is ours here.
    pub(super) fn finish(&self, record: &Record, destination: &Path) -> Result<(), Error> {
        let files = self.files();
        let meta = files.join(META);
        let text = json!({"modelID": record.model, "commitSHA": record.commit}).to_string();
        state_file::write(&meta, text.as_bytes()).map_err(Error::io(meta))?;
        into_place(&files, destination)?;
        self.remove()
    }

    /// State files that a crash left half written, as `state_file` names them.
    fn list_abandoned(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten();
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths
            .filter(|path| {
                let name = path.file_name().unwrap_or_default();
                name.as_encoded_bytes().starts_with(b".tmp")
            })
            .collect()
    }

    /// Removes what is ours, and the folder if nothing else is in it.
    pub(super) fn remove(&self) -> Result<(), Error> {
        let gone = |result: io::Result<()>, path: PathBuf| match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(path)(error)),
            _ => Ok(()),
        };
        // The record first: half of a removal is not a download.
        for path in [self.job(), self.journal()] {
            gone(fs::remove_file(&path), path)?;
        }
        gone(fs::remove_dir_all(self.files()), self.files())?;
        for path in self.list_abandoned() {
            gone(fs::remove_file(&path), path)?;
        }
        gone(fs::remove_file(self.lock_file()), self.lock_file())?;
        // Fails when files of others are there, which is what is wanted.
        let _ = fs::remove_dir(&self.0);
        Ok(())
    }
}

/// Removes all but these files.
fn clear(folder: &Path, kept: &[PathBuf]) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        if kept.contains(&path) {
            continue;
        }
        if !path.is_dir() {
            fs::remove_file(&path).map_err(Error::io(&path))?;
        } else if kept.iter().any(|file| file.starts_with(&path)) {
            clear(&path, kept)?;
        } else {
            fs::remove_dir_all(&path).map_err(Error::io(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, sha256: &str) -> RemoteFile {
        RemoteFile {
            path: path.into(),
            size_bytes: 3,
            sha256: Some(sha256.into()),
            blob_id: None,
            is_needed: true,
        }
    }

    #[test]
    fn one_process_at_a_time_and_again_after_a_removal() {
        let downloads = tempfile::tempdir().unwrap();
        let folder = Folder::of(downloads.path(), "owner/name");
        let lock = folder.lock("owner/name").unwrap();
        assert!(matches!(folder.lock("owner/name"), Err(Error::Busy(_))));
        folder.remove().unwrap();
        drop(lock);
        assert!(!folder.path().exists());
        folder.lock("owner/name").unwrap();
    }

    #[test]
    fn only_files_that_are_the_same_stay() {
        let downloads = tempfile::tempdir().unwrap();
        let folder = Folder::of(downloads.path(), "owner/name");
        let before = [
            file("same", "1"),
            file("changed", "1"),
            file("gone", "1"),
            file("1_Module/same", "1"),
            file("1_Module/gone", "1"),
            file("2_Module/gone", "1"),
        ];
        folder.prepare(&[], &before).unwrap();
        for file in &before {
            fs::write(folder.part(file), "abc").unwrap();
        }
        let now = [
            file("same", "1"),
            file("1_Module/same", "1"),
            file("changed", "2"),
        ];
        folder.prepare(&before, &now).unwrap();
        assert!(folder.part(&now[0]).exists() && folder.part(&now[1]).exists());
        assert!(!folder.part(&now[2]).exists());
        for gone in [&before[2], &before[4], &before[5]] {
            assert!(!folder.part(gone).exists(), "{gone:?}");
        }
    }

    #[test]
    fn what_older_versions_left_stays_and_is_no_download() {
        let downloads = tempfile::tempdir().unwrap();
        let old = downloads.path().join("owner%2Fname");
        fs::create_dir(&old).unwrap();
        fs::write(old.join("resume.dat"), "old").unwrap();
        fs::write(old.join(".tmpX1y2"), "half of a journal").unwrap();
        assert_eq!(Folder::all(downloads.path()).unwrap(), []);
        let folder = Folder::of(downloads.path(), "owner/name");
        let _lock = folder.lock("owner/name").unwrap();
        let record = Record::new("owner/name".into(), None);
        folder.write_record(&record).unwrap();
        folder.prepare(&[], &[]).unwrap();
        assert_eq!(
            Folder::all(downloads.path()).unwrap(),
            std::slice::from_ref(&folder)
        );
        let model = downloads.path().join("models/owner/name");
        folder.finish(&record, &model).unwrap();
        assert!(!model.join("resume.dat").exists());
        assert_eq!(fs::read_to_string(old.join("resume.dat")).unwrap(), "old");
        assert_eq!(fs::read_dir(&old).unwrap().count(), 1);
    }
}
