//! The desktop app in a window of a display without a screen, driven from outside.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Outcome, PROGRAM, STARTER_GGUF, program, pytest, watch};
use crate::{setup, shell, tauri_driver, ui, venv, workspace};

pub(super) fn run(starter: &Path) -> Result<Outcome> {
    setup::ensure_to_build_desktop()?;
    setup::ensure_to_test_desktop()?;
    ui::build()?;
    let folder = workspace::root().join("tests/desktop");
    let python = venv::ensure(&folder.join("requirements.txt"))?;
    let desktop = build()?;
    watch(
        pytest(&python, &folder)
            .env(PROGRAM, program(&[])?)
            .env("MACMLX_DESKTOP_BIN", desktop)
            .env("MACMLX_TAURI_DRIVER", tauri_driver::ensure()?)
            .env(STARTER_GGUF, starter),
    )
}

/// Builds the app as tests run it.
fn build() -> Result<PathBuf> {
    shell::run(shell::cargo().current_dir(workspace::root()).args([
        "build",
        "--package",
        workspace::DESKTOP,
    ]))?;
    workspace::program("debug", workspace::DESKTOP)
}
