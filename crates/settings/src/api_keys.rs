//! Named keys that open client routes: `api-keys.json`, of which only hashes are kept.
//!
//! A key is 32 random bytes, so that a plain SHA-256 cannot be turned back.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Home, secret, state_file, watched, watched::Watched};

/// What every key begins with: some clients look for `sk-`, and people see whose it is.
const PREFIX: &str = "sk-macmlx-";

/// One key, without itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedKey {
    pub name: String,
    pub sha256: [u8; 32],
    /// When it was made, seconds since the Unix epoch.
    pub created_unix: u64,
    /// Its beginning and its end, to know it by.
    pub hint: String,
}

/// Why keys cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum ApiKeysError {
    #[error("cannot access {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} cannot be read as a list of keys; repair or remove it first: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("there is already a key named `{name}`; remove it first or choose another name")]
    Taken { name: String },
    #[error("a key's name is visible text on one line")]
    BadName,
}

/// The keys of a home. What others write is seen at the next question.
#[derive(Debug)]
pub struct ApiKeys {
    file: Watched<Vec<NamedKey>>,
    /// When keys were used last, by their hash, seconds since the Unix epoch. In memory only: a
    /// request is no reason to write.
    used: Mutex<HashMap<[u8; 32], u64>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Document {
    keys: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: String,
    /// Hexadecimal.
    sha256: String,
    #[serde(default)]
    created_unix: u64,
    #[serde(default)]
    hint: String,
}

impl ApiKeys {
    pub fn new(home: &Home) -> Self {
        Self {
            file: Watched::new(home.api_keys_file()),
            used: Mutex::default(),
        }
    }

    /// Notes that a key was used.
    pub fn note_use(&self, sha256: &[u8; 32]) {
        self.used().insert(*sha256, unix_now());
    }

    /// When a key was used last since this list was opened, seconds since the Unix epoch.
    pub fn last_used(&self, sha256: &[u8; 32]) -> Option<u64> {
        self.used().get(sha256).copied()
    }

    fn used(&self) -> MutexGuard<'_, HashMap<[u8; 32], u64>> {
        self.used.lock()
    }

    /// The keys as they are now. While the file is damaged, those of before.
    pub fn current(&self) -> Arc<Vec<NamedKey>> {
        self.file.get(read)
    }

    /// The keys, or why they cannot be read.
    pub fn list(&self) -> Result<Vec<NamedKey>, ApiKeysError> {
        read(self.file.path())
    }

    /// Makes a key and returns it. Only its hash is stored, so it cannot be shown again.
    pub fn add(&self, name: &str) -> Result<String, ApiKeysError> {
        let name = name.trim();
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(ApiKeysError::BadName);
        }
        let _writing = self.file.writing();
        let _alone = state_file::lock(self.file.path()).map_err(|error| self.failed(error))?;
        let mut keys = self.list()?;
        if keys.iter().any(|key| key.name == name) {
            return Err(ApiKeysError::Taken { name: name.into() });
        }
        let key = format!(
            "{PREFIX}{}",
            secret::random().map_err(|error| self.failed(error))?
        );
        keys.push(NamedKey {
            name: name.into(),
            sha256: Sha256::digest(&key).into(),
            created_unix: unix_now(),
            hint: hint(&key),
        });
        self.write(&keys)?;
        Ok(key)
    }

    /// Makes a key useless; returns whether there was one of that name.
    pub fn remove(&self, name: &str) -> Result<bool, ApiKeysError> {
        let _writing = self.file.writing();
        let _alone = state_file::lock(self.file.path()).map_err(|error| self.failed(error))?;
        let mut keys = self.list()?;
        let before = keys.len();
        keys.retain(|key| key.name != name.trim());
        if keys.len() == before {
            return Ok(false);
        }
        self.write(&keys)?;
        Ok(true)
    }

    fn write(&self, keys: &[NamedKey]) -> Result<(), ApiKeysError> {
        let document = Document {
            keys: keys
                .iter()
                .map(|key| Entry {
                    name: key.name.clone(),
                    sha256: hex::encode(key.sha256),
                    created_unix: key.created_unix,
                    hint: key.hint.clone(),
                })
                .collect(),
        };
        let mut text =
            serde_json::to_string_pretty(&document).map_err(|error| self.failed(error.into()))?;
        text.push('\n');
        state_file::write(self.file.path(), text.as_bytes()).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> ApiKeysError {
        ApiKeysError::Io {
            path: self.file.path().into(),
            source,
        }
    }
}

fn read(path: &Path) -> Result<Vec<NamedKey>, ApiKeysError> {
    let bytes = watched::bytes(path).map_err(|source| ApiKeysError::Io {
        path: path.into(),
        source,
    })?;
    let Some(bytes) = bytes else {
        return Ok(Vec::new());
    };
    let unreadable = |reason: String| ApiKeysError::Unreadable {
        path: path.into(),
        reason,
    };
    let document: Document =
        macmlx_json::read_edited(&bytes).map_err(|error| unreadable(error.to_string()))?;
    document
        .keys
        .into_iter()
        .map(|entry| {
            let mut sha256 = [0; 32];
            hex::decode_to_slice(&entry.sha256, &mut sha256)
                .map_err(|_| unreadable(format!("the hash of `{}` is none", entry.name)))?;
            Ok(NamedKey {
                name: entry.name,
                sha256,
                created_unix: entry.created_unix,
                hint: entry.hint,
            })
        })
        .collect()
}

fn unix_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs())
}

/// `sk-macmlx-…1234`: too little to guess the rest by.
fn hint(key: &str) -> String {
    let end = key.len().saturating_sub(4);
    format!("{PREFIX}…{}", key.get(end..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        (folder, home)
    }

    #[test]
    fn a_key_is_told_once_and_kept_hashed() {
        let (_folder, home) = home();
        let keys = ApiKeys::new(&home);
        let laptop = keys.add("laptop").unwrap();
        let phone = keys.add("phone").unwrap();
        assert!(laptop.starts_with(PREFIX));
        assert_ne!(laptop, phone);
        let text = fs::read_to_string(home.api_keys_file()).unwrap();
        assert!(!text.contains(&laptop));
        let listed = keys.list().unwrap();
        assert_eq!(listed[0].name, "laptop");
        assert_eq!(listed[0].sha256, <[u8; 32]>::from(Sha256::digest(&laptop)));
        assert!(listed[0].created_unix > 0);
        assert_eq!(
            listed[0].hint,
            format!("sk-macmlx-…{}", &laptop[laptop.len() - 4..])
        );
        assert_eq!(keys.last_used(&listed[0].sha256), None);
        keys.note_use(&listed[0].sha256);
        assert!(keys.last_used(&listed[0].sha256).is_some());
        assert!(matches!(keys.add("phone"), Err(ApiKeysError::Taken { .. })));
        assert!(matches!(keys.add(" "), Err(ApiKeysError::BadName)));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(home.api_keys_file()).unwrap().permissions();
            assert_eq!(mode.mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_removed_key_is_gone_for_everyone() {
        let (_folder, home) = home();
        let (ours, theirs) = (ApiKeys::new(&home), ApiKeys::new(&home));
        ours.add("a").unwrap();
        assert_eq!(theirs.current().len(), 1);
        assert!(ours.remove("a").unwrap());
        assert!(!ours.remove("a").unwrap());
        assert!(theirs.current().is_empty());
    }

    #[test]
    fn a_damaged_file_takes_no_key_away_and_is_not_written_over() {
        let (_folder, home) = home();
        let keys = ApiKeys::new(&home);
        keys.add("a").unwrap();
        assert_eq!(keys.current().len(), 1);
        for damage in ["{", r#"{"keys": [{"name": "a", "sha256": "00"}]}"#] {
            fs::write(home.api_keys_file(), damage).unwrap();
            assert_eq!(keys.current().len(), 1);
            assert!(matches!(keys.list(), Err(ApiKeysError::Unreadable { .. })));
            assert!(keys.add("b").is_err());
            assert_eq!(fs::read_to_string(home.api_keys_file()).unwrap(), damage);
        }
    }
}
