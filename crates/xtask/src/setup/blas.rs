//! Puts OpenBLAS where `libmlx.so` looks for its BLAS: the wheel brings the reference BLAS, which
//! is an order of magnitude slower.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// File names of the threaded OpenBLAS in the library folders of common distributions, best first.
/// The OpenMP and the serial builds come last: MLX calls BLAS from its own thread.
const FILES: &[&str] = &[
    "openblas-pthread/libopenblas.so.0",
    "libopenblasp.so.0",
    "libopenblas_pthreads.so.0",
    "libopenblas.so.0",
    "libopenblas.so",
];

/// The system's OpenBLAS.
pub(super) fn find() -> Option<PathBuf> {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders = [
        multiarch.as_str(),
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/lib",
    ];
    FILES.iter().find_map(|file| {
        folders
            .iter()
            .map(|folder| Path::new(folder).join(file))
            .find(|path| path.exists())
    })
}

/// Points the wheel's BLAS file in `libraries` at OpenBLAS. The wheel's LAPACK stays: it calls
/// this BLAS too.
pub(super) fn link(libraries: &Path, openblas: &Path) -> Result<()> {
    let blas = fs::read_dir(libraries)
        .with_context(|| format!("cannot read {}", libraries.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("libblas-"))
        })
        .with_context(|| format!("there is no BLAS in {}", libraries.display()))?;
    if fs::read_link(&blas).is_ok_and(|target| target == openblas) {
        return Ok(());
    }
    // By rename, so that a program that starts meanwhile finds one or the other.
    let staged = libraries.join(format!(".blas-{}", std::process::id()));
    symlink(openblas, &staged).with_context(|| format!("cannot create {}", staged.display()))?;
    fs::rename(&staged, &blas).with_context(|| format!("cannot replace {}", blas.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_the_wheels_blas_and_follows_a_move() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("macmlx-blas-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let blas = folder.join("libblas-bd8a282c.so.3.10.0");
        fs::write(&blas, "reference")?;
        fs::write(folder.join("liblapack-86b2c207.so.3.10.0"), "lapack")?;
        for target in ["/opt/one/libopenblas.so.0", "/opt/two/libopenblas.so.0"] {
            link(&folder, Path::new(target))?;
            link(&folder, Path::new(target))?;
            assert_eq!(fs::read_link(&blas)?, Path::new(target));
        }
        assert_eq!(fs::read_dir(&folder)?.count(), 2);
        fs::remove_dir_all(&folder)?;
        Ok(())
    }
}
