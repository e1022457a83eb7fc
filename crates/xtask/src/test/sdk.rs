//! Official SDKs of every dialect against the real program, which plays written answers.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use anyhow::{Context, Result};

use super::{Outcome, program, pytest, watch};
use crate::{npm, playback, venv, workspace};

/// Where tests find the folder of the model whose answers are played.
const MODEL: &str = "MACMLX_PLAYBACK_MODEL";

/// Python environments: not every package agrees on the version of the others.
const PYTHON: &[&str] = &["python", "instructor"];

pub(super) fn run() -> Result<Outcome> {
    let folder = workspace::root().join("tests/sdk");
    let program = program(&["playback"])?;
    let model = playback::model()?;
    let mut sum = Outcome::none();
    for name in PYTHON {
        let tests = folder.join(name);
        let python = venv::ensure(&tests.join("requirements.txt"))?;
        sum += watch(pytest(&python, &tests, &program).env(MODEL, &model))?;
    }
    sum += watch(
        node(&folder.join("js"))?
            .env("MACMLX_BIN", &program)
            .env(MODEL, &model),
    )?;
    Ok(sum)
}

/// Node's own test runner. It looks for packages beside the tests, so a link leads to them.
fn node(tests: &Path) -> Result<Command> {
    let packages = npm::ensure(tests)?.join("node_modules");
    let link = tests.join("node_modules");
    if !fs::read_link(&link).is_ok_and(|target| target == packages) {
        if link.is_symlink() {
            fs::remove_file(&link).with_context(|| format!("cannot remove {}", link.display()))?;
        }
        symlink(&packages, &link).with_context(|| format!("cannot create {}", link.display()))?;
    }
    let mut command = Command::new(npm::node()?.join("node"));
    command
        .current_dir(tests)
        .args(["--test", "--test-reporter=tap"]);
    Ok(command)
}
