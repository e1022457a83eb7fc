//! How much room there is.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Free bytes on the disk of a path, or of where it would be made.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let status = rustix::fs::statvfs(existing(path))?;
    Ok(status.f_bavail.saturating_mul(status.f_frsize))
}

/// The path, or the nearest folder above it that exists.
pub(crate) fn existing(path: &Path) -> PathBuf {
    path.ancestors()
        .find(|ancestor| ancestor.exists())
        .unwrap_or(Path::new("/"))
        .to_path_buf()
}
