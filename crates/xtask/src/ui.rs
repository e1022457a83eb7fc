//! The web UI: its packages and its build.

mod generated;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use anyhow::{Context, Result};

pub(crate) use self::generated::{check_generated, generate};
use crate::{npm, shell, workspace};

fn folder() -> PathBuf {
    workspace::root().join("ui")
}

/// Builds `ui/dist` unless nothing has changed since it was built.
pub(crate) fn build() -> Result<()> {
    let folder = folder();
    let index = folder.join("dist/index.html");
    if let Some(built) = read_modified(&index)
        && newest(&folder)? < built
    {
        return Ok(());
    }
    println!("building the UI");
    run_script("build")
}

/// Type-checks and lints the UI, and weighs what a first visit loads.
pub(crate) fn check() -> Result<()> {
    run_script("check")?;
    build()?;
    run_script("budget")
}

/// A script of `ui/package.json`.
fn run_script(name: &str) -> Result<()> {
    shell::run(&mut script(name)?)
}

/// The command that runs a script of `ui/package.json`, with its packages in place.
pub(crate) fn script(name: &str) -> Result<Command> {
    let folder = folder();
    npm::link(&folder)?;
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", name])
        .env("PATH", npm::path_with(&npm::node()?)?)
        // What is printed may be read by a program.
        .env("NO_COLOR", "1")
        .current_dir(folder);
    Ok(npm)
}

/// The last change of any file that the build reads.
fn newest(folder: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        let name = entry.file_name();
        if name == "dist" || name == "node_modules" {
            continue;
        }
        let path = entry.path();
        let changed = if entry.file_type()?.is_dir() {
            self::newest(&path)?
        } else {
            read_modified(&path).unwrap_or(SystemTime::now())
        };
        newest = newest.max(changed);
    }
    Ok(newest)
}

fn read_modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
