//! A folder of models as repositories.

use std::{fs, io, path::Path};

use super::{File, Repository};

/// Larger files are in large file storage, and weights are whatever their size.
const LARGE_BYTES: u64 = 1 << 20;
/// A repository with this file in its folder is gated; the file itself is not served.
const GATED: &str = ".gated";

/// Reads `owner/name/…` below a folder. The first owner's first model is the most downloaded.
pub(super) fn repositories(folder: &Path) -> io::Result<Vec<Repository>> {
    let mut repositories = Vec::new();
    for owner in subfolders(folder)? {
        for model in subfolders(&folder.join(&owner))? {
            let root = folder.join(&owner).join(&model);
            let mut files = Vec::new();
            collect(&root, "", &mut files)?;
            let mut repository = Repository::new(
                &format!("{owner}/{model}"),
                files
                    .iter()
                    .map(|(path, file)| (path.as_str(), file.clone())),
            );
            repository.is_gated = root.join(GATED).exists();
            repositories.push(repository);
        }
    }
    let count = repositories.len() as u64;
    for (index, repository) in repositories.iter_mut().enumerate() {
        repository.downloads = 1000 * (count - index as u64);
        repository.likes = 1 + index as u64;
    }
    Ok(repositories)
}

fn subfolders(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, File)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files)?;
        } else if name != GATED {
            let bytes = fs::read(&path)?;
            let is_large = bytes.len() as u64 > LARGE_BYTES || name.ends_with(".safetensors");
            let file = if is_large {
                File::large(bytes)
            } else {
                File::small(bytes)
            };
            files.push((name, file));
        }
    }
    Ok(())
}
