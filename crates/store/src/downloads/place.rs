//! A finished download becomes a model folder.

use std::{fs, io, path::Path};

use crate::hub::Error;

/// Moves a folder to its destination, which must not exist. Across volumes it is copied to a
/// hidden folder beside the destination first, so that no scan sees half of it.
pub(super) fn into_place(folder: &Path, destination: &Path) -> Result<(), Error> {
    let parent = destination.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(Error::io(parent))?;
    match fs::rename(folder, destination) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        moved => return moved.map_err(Error::io(destination)),
    }
    let staging = tempfile::Builder::new()
        .prefix(".moving-")
        .tempdir_in(parent)
        .map_err(Error::io(parent))?;
    let copy = staging.path().join("model");
    copy_folder(folder, &copy).map_err(Error::io(&copy))?;
    fs::rename(&copy, destination).map_err(Error::io(destination))?;
    fs::remove_dir_all(folder).map_err(Error::io(folder))
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
            continue;
        }
        fs::copy(entry.path(), &target)?;
        fs::File::open(&target)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_all_files() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("from");
        fs::create_dir_all(from.join("1_Pooling")).unwrap();
        let names = ["config.json", "1_Pooling/config.json"];
        for name in names {
            fs::write(from.join(name), name).unwrap();
        }
        let to = root.path().join("to");
        copy_folder(&from, &to).unwrap();
        for name in names {
            assert_eq!(fs::read_to_string(to.join(name)).unwrap(), name);
        }
    }

    #[test]
    fn owners_are_made() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("from");
        fs::create_dir(&from).unwrap();
        let to = root.path().join("models/owner/repo");
        into_place(&from, &to).unwrap();
        assert!(to.is_dir() && !from.exists());
    }
}
