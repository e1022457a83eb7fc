//! Where things are: the clone, its lock file, and the cache that clones share.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::LazyLock,
};

use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};

use crate::shell;

/// The package of the desktop app.
pub(crate) const DESKTOP: &str = "macmlx-desktop";

/// The root folder of this clone.
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        // Cargo tells at run time as well, which is right also where clones share a target folder
        // and this program was built in another one.
        let manifest = shell::variable("CARGO_MANIFEST_DIR")
            .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = manifest.ancestors().nth(2).map(Path::to_path_buf);
        root.unwrap_or(manifest)
    });
    &ROOT
}

/// The per-user folder for what is downloaded or built once and used by every clone:
/// `$MACMLX_CACHE`, else `macmlx` in the XDG cache folder. Created when missing.
pub(crate) fn cache() -> Result<PathBuf> {
    let folder = if let Some(folder) = shell::variable("MACMLX_CACHE") {
        PathBuf::from(folder)
    } else if let Some(folder) = shell::variable("XDG_CACHE_HOME") {
        PathBuf::from(folder).join("macmlx")
    } else {
        std::env::home_dir()
            .context("there is no home folder: set MACMLX_CACHE to a folder to keep downloads in")?
            .join(".cache/macmlx")
    };
    create_folder(&folder)?;
    fs::canonicalize(&folder).with_context(|| format!("cannot open {}", folder.display()))
}

/// Creates a folder and those above it.
pub(crate) fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Removes a folder with all that is in it, if it exists.
pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Where Cargo puts a program of this clone: beside the folder that it put this one in, which holds
/// for every way of configuring that.
pub(crate) fn program(profile: &str, name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe().context("cannot tell where this program is")?;
    let target = here
        .ancestors()
        .nth(2)
        .context("this program was not built by Cargo")?;
    Ok(target.join(profile).join(name))
}

/// The start of a hash, enough to tell folders apart.
pub(crate) fn short_hex(hash: Sha256) -> String {
    hex::encode(&hash.finalize()[..6])
}

/// Holds others back until the file is dropped, so that two clones do not build the same thing.
pub(crate) fn lock(name: &str) -> Result<File> {
    let path = cache()?.join(format!("{name}.lock"));
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    file.lock()
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// A package of `Cargo.lock`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Locked {
    pub(crate) version: String,
    pub(crate) checksum: String,
}

/// Finds a registry package in `Cargo.lock`.
pub(crate) fn read_locked(package: &str) -> Result<Locked> {
    let path = root().join("Cargo.lock");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    find_locked(&text, package)
        .with_context(|| format!("{} does not pin {package}", path.display()))
}

fn find_locked(text: &str, package: &str) -> Option<Locked> {
    let entry = text
        .split("[[package]]")
        .find(|entry| field(entry, "name") == Some(package))?;
    Some(Locked {
        version: field(entry, "version")?.to_owned(),
        checksum: field(entry, "checksum")?.to_owned(),
    })
}

fn field<'a>(entry: &'a str, key: &str) -> Option<&'a str> {
    entry.lines().find_map(|line| {
        line.strip_prefix(key)?
            .strip_prefix(" = \"")?
            .strip_suffix('"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_package_by_its_whole_name() {
        let text = "version = 4\n\n[[package]]\nname = \"mlx-sys-extra\"\nversion = \"9.0.0\"\n\
            checksum = \"no\"\n\n[[package]]\nname = \"mlx-sys\"\nversion = \"0.7.0\"\n\
            source = \"registry\"\nchecksum = \"abc\"\ndependencies = [\n \"cc\",\n]\n";
        let expected = Locked {
            version: "0.7.0".into(),
            checksum: "abc".into(),
        };
        assert_eq!(find_locked(text, "mlx-sys"), Some(expected));
        assert_eq!(find_locked(text, "mlx"), None);
    }
}
