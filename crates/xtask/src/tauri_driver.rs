//! The program between a `WebDriver` client and the desktop app's web view.

use std::path::PathBuf;

use anyhow::Result;

use crate::{shell, workspace};

const VERSION: &str = "2.0.5";

/// The program's path, built on first use: no package brings it.
pub(crate) fn ensure() -> Result<PathBuf> {
    let folder = workspace::cache()?.join(format!("tauri-driver-{VERSION}"));
    let program = folder.join("bin/tauri-driver");
    let _lock = workspace::lock("tauri-driver")?;
    if !program.is_file() {
        shell::run(
            shell::cargo()
                .args([
                    "install",
                    "--locked",
                    "--quiet",
                    "--no-track",
                    "tauri-driver",
                ])
                .args(["--version", VERSION])
                .arg("--root")
                .arg(&folder),
        )?;
    }
    Ok(program)
}
