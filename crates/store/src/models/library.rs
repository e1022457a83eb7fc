//! The models folder: scanned when asked, described once for as long as it is the
//! same.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use macmlx_inference::{InferenceError, ModelCard};
use parking_lot::Mutex;

use super::{
    Encoders,
    copy::{self, CopyError},
    folder::{self, Entry, Stamp, State},
    reference::{self, Match},
};

/// The local models below one folder: `<owner>/<repo>/` and, as older versions laid them out,
/// `<repo>/`.
#[derive(Debug)]
pub struct Library {
    root: PathBuf,
    encoders: Encoders,
    described: Mutex<HashMap<PathBuf, (Stamp, Entry)>>,
}

/// A model that cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error(transparent)]
    Resolve(#[from] InferenceError),
    #[error("{} is not inside the models folder {}; remove it by hand", path.display(), root.display())]
    Outside { path: PathBuf, root: PathBuf },
    #[error("cannot remove {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl Library {
    /// A library at a folder, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            encoders: Encoders::default(),
            described: Mutex::default(),
        }
    }

    /// The same library, where `encoders` are told from models that generate.
    #[must_use]
    pub fn with_encoders(self, encoders: Encoders) -> Self {
        Self { encoders, ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every model folder, complete or not, sorted by id.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (name, path) in subfolders(&self.root) {
            if folder::is_model(&path) {
                entries.push(self.describe(&name, &path));
                continue;
            }
            for (repo, path) in subfolders(&path) {
                if folder::is_model(&path) {
                    entries.push(self.describe(&format!("{name}/{repo}"), &path));
                }
            }
        }
        entries.sort_by_cached_key(|entry| entry.id.to_lowercase());
        entries
    }

    /// The folder a reference means, complete or not.
    pub fn find(&self, reference: &str) -> Result<Entry, InferenceError> {
        let reference = reference.trim();
        if let Some(entry) = self.at_path(reference) {
            return Ok(entry);
        }
        let entries = self.entries();
        let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        match reference::find(reference, &ids) {
            Match::One(index) => Ok(entries[index].clone()),
            Match::Many(indexes) => Err(InferenceError::AmbiguousModel {
                reference: reference.to_owned(),
                candidates: indexes.iter().map(|&index| ids[index].to_owned()).collect(),
            }),
            Match::None { suggestions } => Err(InferenceError::ModelNotFound {
                reference: reference.to_owned(),
                suggestions,
            }),
        }
    }

    /// The complete model a reference means: full id, bare name, path, unique prefix.
    pub fn resolve(&self, reference: &str) -> Result<ModelCard, InferenceError> {
        let entry = self.find(reference)?;
        match entry.state {
            State::Complete(card) => Ok(card),
            State::Incomplete { reason } => Err(unusable(entry.id, reason)),
        }
    }

    /// Every complete model, sorted by id.
    pub fn list(&self) -> Vec<ModelCard> {
        self.entries()
            .into_iter()
            .filter_map(|entry| entry.card().cloned())
            .collect()
    }

    /// Finds a model as [`Library::find`] does, but by whole names only, for what cannot be undone.
    pub fn find_whole(&self, reference: &str) -> Result<Entry, InferenceError> {
        let entry = self.find(reference)?;
        let wanted = reference.trim();
        let wanted = wanted.strip_suffix(":latest").unwrap_or(wanted);
        let bare = entry.id.rsplit('/').next().unwrap_or(&entry.id);
        let is_whole = wanted.eq_ignore_ascii_case(&entry.id)
            || wanted.eq_ignore_ascii_case(bare)
            // A tag is matched part by part; only a path is absolute or begins with a dot.
            || (wanted.contains(':') && !entry.id.contains(':'))
            || wanted.starts_with(['/', '.']);
        if is_whole {
            Ok(entry)
        } else {
            Err(InferenceError::ModelNotFound {
                reference: reference.to_owned(),
                suggestions: vec![entry.id],
            })
        }
    }

    /// Gives a model a second name, under which it stays when the first is removed. Large files
    /// take no more disk. Giving it the same name again changes nothing.
    pub fn copy(&self, source: &str, destination: &str) -> Result<(), CopyError> {
        let entry = self.find_whole(source)?;
        let card = match entry.state {
            State::Complete(card) => card,
            State::Incomplete { reason } => return Err(unusable(entry.id, reason).into()),
        };
        let id = copy::new_id(destination)?;
        let target = self.root.join(id);
        if target.exists() {
            let there = self.describe(id, &target);
            let is_same = there
                .card()
                .is_some_and(|there| there.digest == card.digest);
            return if is_same {
                Ok(())
            } else {
                Err(CopyError::Taken(id.to_owned()))
            };
        }
        copy::copy_folder(&card.path, &self.root, id)
    }

    /// Deletes a model's folder, and its owner's when that was the last; returns what was removed.
    pub fn remove(&self, reference: &str) -> Result<Entry, RemoveError> {
        let entry = self.find(reference)?;
        let outside = || RemoveError::Outside {
            path: entry.path.clone(),
            root: self.root.clone(),
        };
        let relative = entry.path.strip_prefix(&self.root).map_err(|_| outside())?;
        if relative.as_os_str().is_empty() {
            return Err(outside());
        }
        let failed = |source| RemoveError::Io {
            path: entry.path.clone(),
            source,
        };
        if entry.path.is_symlink() {
            fs::remove_file(&entry.path).map_err(failed)?;
        } else {
            fs::remove_dir_all(&entry.path).map_err(failed)?;
        }
        if let Some(owner) = entry.path.parent().filter(|owner| *owner != self.root) {
            // Fails when other models are there, which is what is wanted.
            let _ = fs::remove_dir(owner);
        }
        Ok(entry)
    }

    /// A reference that is the path of a folder, in the library or elsewhere.
    fn at_path(&self, reference: &str) -> Option<Entry> {
        let path = Path::new(reference);
        let is_explicit =
            path.is_absolute() || reference.starts_with("./") || reference.starts_with("../");
        if !is_explicit || !folder::is_model(path) {
            return None;
        }
        let path = fs::canonicalize(path).ok()?;
        let root = fs::canonicalize(&self.root).unwrap_or_else(|_| self.root.clone());
        let id = match path.strip_prefix(&root) {
            Ok(relative) => return self.entry_at(relative),
            Err(_) => path.to_string_lossy().into_owned(),
        };
        Some(self.describe(&id, &path))
    }

    fn entry_at(&self, relative: &Path) -> Option<Entry> {
        let id = relative.to_str()?;
        Some(self.describe(id, &self.root.join(relative)))
    }

    fn describe(&self, id: &str, path: &Path) -> Entry {
        let stamp = Stamp::of(path);
        let mut described = self.described.lock();
        match described.get(path) {
            Some((known, entry)) if *known == stamp => entry.clone(),
            _ => {
                let entry = folder::describe(id, path, stamp, &self.encoders);
                described.insert(path.to_path_buf(), (stamp, entry.clone()));
                entry
            }
        }
    }
}

fn unusable(model: String, reason: String) -> InferenceError {
    InferenceError::ModelLoad { model, reason }
}

/// Folders in a folder, links included, hidden ones left out.
fn subfolders(folder: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let path = entry.path();
            (!name.starts_with('.') && path.is_dir()).then_some((name, path))
        })
        .collect()
}
