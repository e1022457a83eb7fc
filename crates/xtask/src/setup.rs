//! `cargo xtask setup`: installs what is missing and puts MLX where Cargo finds it.

mod blas;
mod mlx;
mod tools;

use anyhow::{Result, bail};

/// Makes the machine ready to build; quick when it already is.
pub(crate) fn run() -> Result<()> {
    if cfg!(target_os = "macos") {
        // mlx-sys builds MLX itself there.
        return tools::check_macos();
    }
    if !cfg!(target_os = "linux") {
        bail!("macMLX builds on macOS and Linux");
    }
    mlx::ensure()
}

/// What Python environments need besides.
pub(crate) fn ensure_to_make_environments() -> Result<()> {
    tools::ensure_to_make_environments()
}

/// What type-checking for macOS on Linux needs besides.
pub(crate) fn ensure_to_check_macos() -> Result<()> {
    tools::ensure_to_check_macos()
}
