//! Python environments for tests and benchmarks, kept in the shared cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};

use crate::{pypi, setup, shell, workspace};

/// The Python of an environment with exactly what `requirements` pins; made on first use and
/// again when the file or the system's Python changes.
pub(crate) fn ensure(requirements: &Path) -> Result<PathBuf> {
    setup::ensure_to_make_environments()?;
    let text = fs::read(requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let version = shell::output(pypi::python().arg("--version"))?;
    let mut hash = Sha256::new();
    hash.update(&version);
    hash.update(&text);
    let folder = workspace::cache()?
        .join("venvs")
        .join(workspace::short_hex(hash));

    let _lock = workspace::lock("venvs")?;
    let python = folder.join("bin/python");
    let complete = folder.join("complete");
    if complete.exists() && shell::succeeds(Command::new(&python).arg("--version")) {
        return Ok(python);
    }
    println!("installing {}", requirements.display());
    workspace::remove_folder(&folder)?;
    workspace::create_folder(&folder)?;
    let log = folder.join("install.log");
    shell::run_logged(pypi::python().args(["-m", "venv"]).arg(&folder), &log)?;
    shell::run_logged(
        Command::new(&python)
            .args(["-m", "pip", "install", "--disable-pip-version-check", "-r"])
            .arg(requirements),
        &log,
    )?;
    fs::write(&complete, "").with_context(|| format!("cannot write {}", complete.display()))?;
    Ok(python)
}
