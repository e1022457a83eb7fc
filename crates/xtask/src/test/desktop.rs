//! The desktop app in a window of a display without a screen, driven from outside.

use std::path::Path;

use anyhow::Result;

use super::{Outcome, PROGRAM, STARTER_GGUF, pytest, watch};
use crate::{packages, setup, tauri_driver, venv, workspace};

pub(super) fn run(starter: &Path) -> Result<Outcome> {
    setup::ensure_to_build_desktop()?;
    setup::ensure_to_test_desktop()?;
    let folder = workspace::root().join("tests/desktop");
    let python = venv::ensure(&folder.join("requirements.txt"))?;
    let desktop = packages::program(workspace::DESKTOP, &[])?;
    watch(
        pytest(&python, &folder)
            .env(PROGRAM, packages::program("macmlx", &[])?)
            .env("MACMLX_DESKTOP_BIN", desktop)
            .env("MACMLX_TAURI_DRIVER", tauri_driver::ensure()?)
            .env(STARTER_GGUF, starter),
    )
}
