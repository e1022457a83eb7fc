//! The web UI in a headless Chromium, against the real program.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

use super::{Outcome, PROGRAM, STARTER_GGUF, mcp, watch};
use crate::{npm, packages, playback, setup, ui, workspace};

pub(super) fn run(starter: &Path) -> Result<Outcome> {
    setup::ensure_to_test_in_a_browser()?;
    ui::build()?;
    let folder = workspace::root().join("tests/browser");
    npm::link(&folder)?;
    let chromium = setup::chromium().context("there is no Chromium")?;
    watch(
        Command::new(npm::node()?.join("node"))
            .current_dir(&folder)
            .args(["--test", "--test-reporter=tap", "--test-concurrency=1"])
            .env(PROGRAM, packages::program("macmlx", &["playback", "ui"])?)
            .env("MACMLX_HUB_DOUBLE", packages::example("hub-double")?)
            .env("MACMLX_PLAYBACK_MODEL", playback::model()?)
            .env("MACMLX_CHROMIUM", chromium)
            .envs(mcp::servers()?)
            .env(STARTER_GGUF, starter),
    )
}
