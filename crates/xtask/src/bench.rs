//! `cargo xtask bench`: our server against mlx-lm's and sentence-transformers on this machine.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::{encoders, playback, run, setup, shell, starter, venv, workspace};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print every figure as JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Measure and print this part alone.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Measurements of each figure after the warm-up.
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// A figure that takes longer than this gets fewer runs.
    #[arg(long, default_value_t = 600)]
    budget_seconds: u32,
}

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// What stands around the engine.
    Protocol,
    /// What it costs to hold an output to a schema.
    Structure,
    /// Embeddings and reranking against sentence-transformers, only when asked for: its torch is
    /// several gigabytes on Linux.
    Encoders,
}

/// Builds, makes the peer's environment, measures. The raw figures stay in the cache.
pub(crate) fn run(options: &Options) -> Result<()> {
    setup::run()?;
    let folder = workspace::root().join("bench");
    let python = venv::ensure(&folder.join("requirements.txt"))?;
    let program = run::build(&["playback"], false)?;
    let work = workspace::cache()?.join("bench");
    let mut bench = Command::new(python);
    bench
        .arg(folder.join("bench.py"))
        .arg("--binary")
        .arg(&program)
        .arg("--model")
        .arg(starter_folder(&program, &work)?)
        .arg("--playback-model")
        .arg(playback::model()?)
        .arg("--work")
        .arg(&work)
        .arg("--output")
        .arg(work.join("figures.json"))
        .args(["--runs", &options.runs.to_string()])
        .args(["--budget-seconds", &options.budget_seconds.to_string()]);
    if let Some(name) = options.only.and_then(|part| part.to_possible_value()) {
        bench.args(["--only", name.get_name()]);
    }
    if options.only == Some(Part::Encoders) {
        bench
            .arg("--encoders")
            .arg(encoders::folder()?)
            .arg("--encoders-python")
            .arg(venv::ensure(&folder.join("requirements-encoders.txt"))?);
    }
    if options.json {
        bench.arg("--json");
    }
    shell::run(&mut bench)
}

/// The starter model as our own import makes it.
fn starter_folder(program: &Path, work: &Path) -> Result<PathBuf> {
    let home = work.join("home");
    let folder = home.join("models").join(starter::NAME);
    if !folder.join("config.json").exists() {
        workspace::create_folder(&home)?;
        shell::run(
            Command::new(program)
                .env("MACMLX_HOME", &home)
                .arg("import")
                .arg(starter::gguf()?)
                .args(["--name", starter::NAME]),
        )
        .context("cannot import the starter model")?;
    }
    ensure!(folder.exists(), "{} is missing", folder.display());
    Ok(folder)
}
