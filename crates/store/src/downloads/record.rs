//! What is kept of a download: `job.json` and, beside it, `ranges.json`.

use std::{collections::BTreeMap, fs, io, path::Path};

use jiff::Timestamp;
use macmlx_settings::state_file;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;

use super::{
    job::{Failure, State},
    ranges::Ranges,
};
use crate::hub::RemoteFile;

/// `job.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub id: Uuid,
    /// `owner/name`.
    pub model: String,
    pub revision: Option<String>,
    pub commit: Option<String>,
    /// A state that is not at rest: the process ended in the middle.
    pub state: State,
    pub error: Option<Failure>,
    /// The process at work on it.
    pub holder: Option<u32>,
    pub created: Timestamp,
    pub updated: Timestamp,
    #[serde(default)]
    pub files: Vec<RemoteFile>,
}

impl Record {
    pub(super) fn new(model: String, revision: Option<String>) -> Self {
        let now = Timestamp::now();
        Self {
            id: Uuid::new_v4(),
            model,
            revision,
            commit: None,
            state: State::Queued,
            error: None,
            holder: None,
            created: now,
            updated: now,
            files: Vec::new(),
        }
    }

    /// A process other than this one may be at work on it; its lock tells for certain.
    pub(super) fn may_be_held_elsewhere(&self) -> bool {
        self.holder
            .filter(|holder| *holder != std::process::id())
            .and_then(|holder| rustix::process::Pid::from_raw(i32::try_from(holder).ok()?))
            .is_some_and(|holder| rustix::process::test_kill_process(holder).is_ok())
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }
}

/// `ranges.json`: bytes of unfinished files that are on the disk for certain, by path.
pub(super) type Journal = BTreeMap<String, Ranges>;

/// Reads a state file; one that cannot be understood is set aside and `None`.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match macmlx_json::read_document(&text) {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let aside = state_file::set_aside(path)?;
            tracing::warn!(%error, aside = %aside.display(), "state of a download cannot be read");
            Ok(None)
        }
    }
}

pub(super) fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    state_file::write(path, &serde_json::to_vec_pretty(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_and_damaged_ones_are_kept_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.json");
        assert_eq!(read::<Record>(&path).unwrap(), None);
        let record = Record::new("owner/name".into(), None);
        write(&path, &record).unwrap();
        assert_eq!(read::<Record>(&path).unwrap(), Some(record));
        fs::write(&path, "{\"id\":").unwrap();
        assert_eq!(read::<Record>(&path).unwrap(), None);
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(
            names.len() == 1 && names[0].contains("unreadable"),
            "{names:?}"
        );
    }
}
