//! `cargo xtask setup`: installs what is missing and puts MLX where Cargo finds it.

mod blas;
mod mlx;
mod tools;

pub(crate) use tools::{
    can_build_desktop, chromium, ensure_to_build_desktop, ensure_to_check_macos,
    ensure_to_make_environments, ensure_to_test_desktop, ensure_to_test_in_a_browser,
};

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
