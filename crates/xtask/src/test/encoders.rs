//! Real encoders, through the program, against other engines.

use anyhow::Result;

use super::{Outcome, PROGRAM, pytest, watch};
use crate::{encoders, packages, venv, workspace};

/// Where tests find the folder with real encoders.
pub(super) const ENCODERS: &str = "MACMLX_ENCODERS";

pub(super) fn run() -> Result<Outcome> {
    let folder = workspace::root().join("tests/encoders");
    let python = venv::ensure(&folder.join("requirements.txt"))?;
    watch(
        pytest(&python, &folder)
            .env(PROGRAM, packages::program("macmlx", &["playback"])?)
            .env(ENCODERS, encoders::folder()?)
            .env("MACMLX_ENCODER_GRAPHS", encoders::ensure_package()?),
    )
}
