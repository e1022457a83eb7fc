//! Cargo's commands for the packages of this clone.
//!
//! None is chosen: dependencies are then built once, with the features that all packages together
//! ask for, and not again for each with fewer.

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use crate::{setup, shell, ui, workspace};

/// Arguments that mean every package that can be built here.
pub(crate) fn all() -> Result<&'static [&'static str]> {
    if setup::can_build_desktop() {
        // The shell carries the UI's files.
        ui::build()?;
        Ok(&["--workspace"])
    } else {
        Ok(&["--workspace", "--exclude", workspace::DESKTOP])
    }
}

/// A command of Cargo for all of them.
pub(crate) fn cargo(subcommand: &str) -> Result<Command> {
    let mut command = shell::cargo();
    command
        .current_dir(workspace::root())
        .arg(subcommand)
        .args(all()?);
    Ok(command)
}

/// Builds a program as tests run it, with these features of `macmlx-cli`.
pub(crate) fn program(name: &str, features: &[&str]) -> Result<PathBuf> {
    let features: Vec<String> = features
        .iter()
        .map(|feature| format!("macmlx-cli/{feature}"))
        .collect();
    shell::run(
        cargo("build")?
            .args(["--bin", name])
            .args(["--features", &features.join(",")]),
    )?;
    workspace::program("debug", name)
}

/// Builds an example, which is how programs for tests come.
pub(crate) fn example(name: &str) -> Result<PathBuf> {
    shell::run(cargo("build")?.args(["--quiet", "--example", name]))?;
    workspace::program("debug/examples", name)
}
