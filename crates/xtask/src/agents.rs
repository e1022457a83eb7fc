//! `cargo xtask agents`: real coding agents against the real program, in each wire format they have.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::{npm, packages, playback, pypi, setup, shell, starter, venv, workspace};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Run only this agent (may be repeated).
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Run only this kind (may be repeated).
    #[arg(long, value_enum)]
    kind: Vec<Kind>,
    /// Keep each request that the agents sent below this folder, without paths and prose.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Keep what each run left (its home, its work folder, its output) below this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// Written answers: the agent reads a file, edits it and finishes.
    Edit,
    /// Written answers and a context that no prompt fits in: the agent tells its user.
    Context,
    /// The real engine with the starter model.
    Starter,
}

/// Installs the agents that were asked for, builds, runs them all and prints a table.
pub(crate) fn run(options: &Options) -> Result<()> {
    setup::run()?;
    let folder = workspace::root().join("tests/agents");
    let agents = agents(&folder.join("agents"), &options.only)?;
    shell::run(
        pypi::python()
            .current_dir(&folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .args(["-m", "unittest", "--quiet"]),
    )?;
    let mut runner = pypi::python();
    runner.arg(folder.join("run.py"));
    for (name, pins) in &agents {
        let mut installed = OsString::from(format!("{name}="));
        installed.push(install(pins)?);
        runner.arg("--agent").arg(installed);
    }
    runner
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("MACMLX_BIN", packages::program("macmlx", &["playback"])?)
        .arg("--node")
        .arg(npm::node()?)
        .arg("--playback-model")
        .arg(playback::model()?)
        .arg("--starter-gguf")
        .arg(starter::gguf()?)
        .args(["--starter-name", starter::NAME]);
    for kind in &options.kind {
        let kind = kind.to_possible_value().context("every kind has a name")?;
        runner.args(["--kind", kind.get_name()]);
    }
    for (flag, folder) in [("--record", &options.record), ("--keep", &options.keep)] {
        if let Some(folder) = folder {
            runner.arg(flag).arg(folder);
        }
    }
    shell::run(&mut runner).context("not every agent got along with macMLX")
}

/// The agents there are, each with the folder that pins it; those in `only` unless it is empty.
fn agents(folder: &Path, only: &[String]) -> Result<BTreeMap<String, PathBuf>> {
    let mut agents = BTreeMap::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && entry.path().join("agent.py").exists()
        {
            agents.insert(name, entry.path());
        }
    }
    if let Some(unknown) = only.iter().find(|name| !agents.contains_key(*name)) {
        let known: Vec<&str> = agents.keys().map(String::as_str).collect();
        bail!(
            "there is no agent {unknown}; there are {}",
            known.join(", ")
        );
    }
    agents.retain(|name, _| only.is_empty() || only.contains(name));
    Ok(agents)
}

/// The folder an agent is installed in: one with `node_modules`, or a Python environment.
fn install(pins: &Path) -> Result<PathBuf> {
    if pins.join("package-lock.json").exists() {
        return npm::ensure(pins);
    }
    let python = venv::ensure(&pins.join("requirements.txt"))?;
    let folder = python.ancestors().nth(2);
    Ok(folder.context("an environment has a folder")?.to_owned())
}
