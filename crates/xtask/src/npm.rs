//! Node and folders of its packages, exactly as their lock files say, kept in the shared cache.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::{shell, workspace};

/// The oldest Node that today's clients run on.
const OLDEST_MAJOR: u32 = 22;

/// The folder of a `node` that is new enough: the machine's own, else one out of a package.
pub(crate) fn node() -> Result<PathBuf> {
    if let Some(program) = shell::find_program("node")
        && major(&program).is_some_and(|major| major >= OLDEST_MAJOR)
        && let Some(folder) = program.parent()
    {
        return Ok(folder.to_owned());
    }
    let modules = install(&workspace::root().join("tests/node"), None)?.join("node_modules");
    let found = fs::read_dir(&modules)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .find(|folder| folder.join("node").is_file());
    found.with_context(|| {
        format!("no package has Node for this machine: install Node {OLDEST_MAJOR} or newer")
    })
}

/// The folder with the `node_modules` that the lock file in `manifest` pins; installed on first use
/// and again when the lock file changes.
pub(crate) fn ensure(manifest: &Path) -> Result<PathBuf> {
    install(manifest, Some(&node()?))
}

/// Puts the packages of a manifest beside it, where programs look for them, and returns that folder.
/// A `node_modules` that someone installed there is left as it is.
pub(crate) fn link(manifest: &Path) -> Result<PathBuf> {
    let link = manifest.join("node_modules");
    if link.is_dir() && !link.is_symlink() {
        return Ok(link);
    }
    let packages = ensure(manifest)?.join("node_modules");
    if !fs::read_link(&link).is_ok_and(|target| target == packages) {
        if link.is_symlink() {
            fs::remove_file(&link).with_context(|| format!("cannot remove {}", link.display()))?;
        }
        symlink(&packages, &link).with_context(|| format!("cannot create {}", link.display()))?;
    }
    Ok(link)
}

/// A `PATH` on which the programs of `folder` come first.
pub(crate) fn path_with(folder: &Path) -> Result<OsString> {
    let path = shell::variable("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("the PATH cannot be extended")
}

/// Installs with the machine's npm, which runs on the Node in `node` where that is given.
fn install(manifest: &Path, node: Option<&Path>) -> Result<PathBuf> {
    let lock_file = manifest.join("package-lock.json");
    let text =
        fs::read(&lock_file).with_context(|| format!("cannot read {}", lock_file.display()))?;
    let mut hash = Sha256::new();
    hash.update(&text);
    let folder = workspace::cache()?
        .join("npm")
        .join(workspace::short_hex(hash));

    let _lock = workspace::lock("npm")?;
    let complete = folder.join("complete");
    if complete.exists() {
        return Ok(folder);
    }
    ensure!(
        shell::find_program("npm").is_some(),
        "npm is missing: install it, on Debian as `npm`"
    );
    println!("installing {}", manifest.display());
    workspace::remove_folder(&folder)?;
    workspace::create_folder(&folder)?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(manifest.join(name), folder.join(name))
            .with_context(|| format!("cannot copy {name} of {}", manifest.display()))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--no-update-notifier"])
        .current_dir(&folder);
    if let Some(node) = node {
        npm.env("PATH", path_with(node)?);
    }
    shell::run_logged(&mut npm, &folder.join("install.log"))?;
    fs::write(&complete, "").with_context(|| format!("cannot write {}", complete.display()))?;
    Ok(folder)
}

fn major(program: &Path) -> Option<u32> {
    let output = Command::new(program).arg("--version").output().ok()?;
    parse_major(&String::from_utf8(output.stdout).ok()?)
}

/// The major version: 22 for `v22.1.0`.
fn parse_major(version: &str) -> Option<u32> {
    let (major, _) = version.strip_prefix('v')?.split_once('.')?;
    major.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_major_version() {
        assert_eq!(parse_major("v22.23.3\n"), Some(22));
        assert_eq!(parse_major("v8.0.0"), Some(8));
        assert_eq!(parse_major("node: not found"), None);
    }
}
