//! Official SDKs of every dialect against the real program, which plays written answers or draws
//! the starter model's.

use std::{path::Path, process::Command};

use anyhow::Result;

use super::{Outcome, PROGRAM, STARTER_GGUF, encoders::ENCODERS, pytest, watch};
use crate::{encoders, npm, packages, playback, venv, workspace};

/// Where tests find the folder of the model whose answers are played.
const MODEL: &str = "MACMLX_PLAYBACK_MODEL";

/// Python environments: not every package agrees on the version of the others.
const PYTHON: &[&str] = &["python", "instructor"];

pub(super) fn run(starter: &Path) -> Result<Outcome> {
    let folder = workspace::root().join("tests/sdk");
    let program = packages::program("macmlx", &["playback"])?;
    let model = playback::model()?;
    let encoders = encoders::folder()?;
    let mut sum = Outcome::none();
    for name in PYTHON {
        let tests = folder.join(name);
        let python = venv::ensure(&tests.join("requirements.txt"))?;
        sum += watch(
            pytest(&python, &tests)
                .env(PROGRAM, &program)
                .env(MODEL, &model)
                .env(ENCODERS, &encoders)
                .env(STARTER_GGUF, starter),
        )?;
    }
    sum += watch(
        node(&folder.join("js"))?
            .env(PROGRAM, &program)
            .env(MODEL, &model)
            .env(ENCODERS, &encoders)
            .env(STARTER_GGUF, starter),
    )?;
    Ok(sum)
}

/// Node's own test runner.
fn node(tests: &Path) -> Result<Command> {
    npm::link(tests)?;
    let mut command = Command::new(npm::node()?.join("node"));
    command
        .current_dir(tests)
        .args(["--test", "--test-reporter=tap"]);
    Ok(command)
}
