//! A model under a second name: a folder of its own whose large files are the same on disk.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use macmlx_inference::InferenceError;

use super::folder;

/// Smaller files that are no weights are copied, so that editing a config of one model leaves the
/// other alone.
const LINKED_FROM_BYTES: u64 = 1024 * 1024;

/// A model that cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Resolve(#[from] InferenceError),
    #[error(
        "`{0}` cannot be the name of a model: use NAME or OWNER/NAME, of letters, digits, `-`, `_`, `.` and `:`"
    )]
    Name(String),
    #[error("`{0}` is there already, and it is another model")]
    Taken(String),
    #[error("cannot copy to {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The id that a new name gives, without Ollama's default tag.
pub(super) fn new_id(name: &str) -> Result<&str, CopyError> {
    let id = name.trim();
    let id = id.strip_suffix(":latest").unwrap_or(id);
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
    };
    let parts: Vec<&str> = id.split('/').collect();
    if parts.len() <= 2 && parts.iter().all(|part| is_plain(part)) {
        Ok(id)
    } else {
        Err(CopyError::Name(name.to_owned()))
    }
}

/// Makes `root/id` a copy of a model's folder. The destination appears whole or not at all.
pub(super) fn copy_folder(source: &Path, root: &Path, id: &str) -> Result<(), CopyError> {
    let destination = root.join(id);
    let failed = |source| CopyError::Io {
        path: destination.clone(),
        source,
    };
    let staging = stage(source, root).map_err(failed)?;
    put(&staging, root, id)
}

/// A copy of a model's folder, which goes away unless it is put in its place.
pub(super) fn stage(source: &Path, root: &Path) -> io::Result<Staging> {
    fs::create_dir_all(root)?;
    let staging = Staging(
        tempfile::Builder::new()
            .prefix(".copying-")
            .tempdir_in(root)?,
    );
    fill(source, &staging.model())?;
    Ok(staging)
}

/// A folder of the library that is not shown.
#[derive(Debug)]
pub(super) struct Staging(tempfile::TempDir);

impl Staging {
    /// The model's folder in it.
    pub(super) fn model(&self) -> PathBuf {
        self.0.path().join("model")
    }
}

/// Makes a staged model `root/id`, in place of what is there.
pub(super) fn put(staging: &Staging, root: &Path, id: &str) -> Result<(), CopyError> {
    let destination = root.join(id);
    let owner = destination.parent().unwrap_or(root);
    if owner != root && folder::is_model(owner) {
        return Err(CopyError::Taken(id.to_owned()));
    }
    let put = || {
        fs::create_dir_all(owner)?;
        if destination.exists() {
            fs::rename(&destination, staging.0.path().join("before"))?;
        }
        fs::rename(staging.model(), &destination)
    };
    put().map_err(|source| CopyError::Io {
        path: destination.clone(),
        source,
    })
}

fn fill(source: &Path, copy: &Path) -> io::Result<()> {
    fs::create_dir(copy)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        // Links are followed: the copy must not depend on them.
        let path = fs::canonicalize(entry.path())?;
        let metadata = fs::metadata(&path)?;
        let target = copy.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            // An encoder's modules; what the hub's own tools leave there is hidden.
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                fill(&path, &target)?;
            }
            continue;
        }
        if !metadata.is_file() {
            continue;
        }
        let is_weights = target.extension().is_some_and(|end| end == "safetensors");
        if !is_weights && metadata.len() < LINKED_FROM_BYTES {
            fs::copy(&path, &target)?;
            continue;
        }
        match fs::hard_link(&path, &target) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                std::os::unix::fs::symlink(&path, &target)?;
            }
            linked => linked?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folders_of_one_or_two_parts() {
        for (name, id) in [
            ("copy", "copy"),
            ("my/copy:latest", "my/copy"),
            (" llama3.2:backup ", "llama3.2:backup"),
        ] {
            assert_eq!(new_id(name).unwrap(), id);
        }
        for name in [
            "", "/", "a/", "/a", "a/b/c", "../a", "a/..", ".a", "a b", "a\\b", "a\0b", ":latest",
        ] {
            assert!(new_id(name).is_err(), "{name}");
        }
    }
}
