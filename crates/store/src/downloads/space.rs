//! Whether a download fits on the disk, with all that is under way.

use std::{os::unix::fs::MetadataExt, path::Path};

use super::{
    folder::Folder,
    options::{Options, Places},
    progress::Progress,
};
use crate::{
    disk::{existing, free_bytes},
    hub::Error,
};

/// Bytes that a place still has to hold.
struct Need<'a> {
    path: &'a Path,
    bytes: u64,
}

/// Refuses a download that cannot end well: what it lacks, what other downloads of this process
/// lack (`promised_bytes`) and what those of other processes do must fit. Blocks.
pub(super) fn check(
    places: &Places,
    options: &Options,
    own: &Folder,
    lacking_bytes: u64,
    total_bytes: u64,
    promised_bytes: u64,
) -> Result<(), Error> {
    let elsewhere: u64 = Folder::all(&places.downloads)
        .map_err(Error::io(&places.downloads))?
        .iter()
        .filter(|folder| *folder != own)
        .filter_map(lacking_elsewhere)
        .sum();
    let mut needs = vec![Need {
        path: own.path(),
        bytes: lacking_bytes + promised_bytes + elsewhere,
    }];
    let models = existing(&places.models);
    if device(own.path())? != device(&models)? {
        // A finished model is copied there.
        needs.push(Need {
            path: &models,
            bytes: total_bytes,
        });
    }
    for need in needs {
        let available_bytes = free_bytes(need.path).map_err(Error::io(need.path))?;
        if available_bytes < need.bytes.saturating_add(options.spare_bytes) {
            return Err(Error::NoSpace {
                path: need.path.to_path_buf(),
                needed_bytes: need.bytes,
                available_bytes,
            });
        }
    }
    Ok(())
}

/// What a download that another process is at work on lacks.
fn lacking_elsewhere(folder: &Folder) -> Option<u64> {
    let record = folder.read_record().ok()??;
    if !folder.is_held_elsewhere(&record) {
        return None;
    }
    Some(
        Progress::load(folder, &record.files)
            .ok()?
            .remaining_bytes(),
    )
}

fn device(path: &Path) -> Result<u64, Error> {
    Ok(std::fs::metadata(path).map_err(Error::io(path))?.dev())
}
