//! `cargo xtask test`: every test there is, with the number that ran.

mod browser;
mod counts;
mod desktop;
mod encoders;
mod mcp;
mod schemas;
mod sdk;
mod templates;

use std::{ops::AddAssign, path::Path, process::Command};

use anyhow::{Result, bail};
use clap::ValueEnum;
use counts::Counts;

use crate::{packages, setup, shell, starter, tool, ui, venv, workspace};

/// Where the end-to-end tests find the starter model's GGUF file.
const STARTER_GGUF: &str = "MACMLX_STARTER_GGUF";

/// Where tests find the program that they run.
const PROGRAM: &str = "MACMLX_BIN";

/// MLX's default stream and allocator are shared by a process, so these run one test at a time.
const SERIAL: &[&str] = &["macmlx-models", "macmlx-engine"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Unit and integration tests of the crates.
    Rust,
    /// Examples in documentation.
    Docs,
    /// The real program with the starter model, asked by a real client.
    E2e,
    /// Grammars of JSON schemas: the JSON Schema test suite, and real schemas drawn from.
    Schemas,
    /// Real encoders through the real program, against other engines.
    Encoders,
    /// Official SDKs of every dialect against written answers and the starter model.
    Sdk,
    /// Real chat templates against Python's transformers.
    Templates,
    /// The hub that tests download from, asked by Hugging Face's own client.
    Downloads,
    /// Units of the web UI.
    Ui,
    /// The web UI in a browser, against the real program.
    Browser,
    /// The desktop app in a window.
    Desktop,
}

/// Runs the suites, all when none is named, also after one has failed.
pub(crate) fn run(suites: &[Suite]) -> Result<()> {
    setup::run()?;
    let suites = if suites.is_empty() {
        Suite::value_variants()
    } else {
        suites
    };
    let starter = starter::gguf()?;
    let mut lines = Vec::new();
    let mut failed = false;
    for suite in suites {
        let (name, outcome) = match suite {
            Suite::Rust => ("rust", rust(&starter)),
            Suite::Docs => ("docs", docs()),
            Suite::E2e => ("e2e", e2e(&starter)),
            Suite::Schemas => ("schemas", schemas::run(&starter)),
            Suite::Encoders => ("encoders", encoders::run()),
            Suite::Sdk => ("sdk", sdk::run(&starter)),
            Suite::Templates => ("templates", templates::run()),
            Suite::Downloads => ("downloads", downloads()),
            Suite::Ui => ("ui", watch(&mut ui::script("test")?)),
            Suite::Browser => ("browser", browser::run(&starter)),
            Suite::Desktop => ("desktop", desktop::run(&starter)),
        };
        match outcome {
            Ok(outcome) => {
                // Documentation may have no examples; the other suites are never empty.
                let is_empty = outcome.counts.ran() == 0 && *suite != Suite::Docs;
                failed |= !outcome.succeeded || outcome.counts.failed > 0 || is_empty;
                lines.push(format!("{name}: {}", outcome.counts));
            }
            Err(error) => {
                failed = true;
                lines.push(format!("{name}: did not run: {error:#}"));
            }
        }
    }
    println!("{}", lines.join("\n"));
    if failed {
        bail!("not every test passed");
    }
    Ok(())
}

/// What a suite's programs printed and how they ended.
struct Outcome {
    succeeded: bool,
    counts: Counts,
}

impl Outcome {
    /// The outcome of running nothing.
    fn none() -> Self {
        Self {
            succeeded: true,
            counts: Counts::default(),
        }
    }
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.succeeded &= other.succeeded;
        self.counts += other.counts;
    }
}

fn rust(starter: &Path) -> Result<Outcome> {
    let servers = mcp::servers()?;
    if let Ok(nextest) = tool::CARGO_NEXTEST.find_or_ensure() {
        return watch(
            Command::new(nextest)
                .current_dir(workspace::root())
                .args(["nextest", "run", "--no-fail-fast"])
                .args(packages::all()?)
                .envs(servers)
                .env(STARTER_GGUF, starter),
        );
    }
    let mut parallel = packages::cargo("test")?;
    parallel.args(["--all-targets", "--no-fail-fast"]);
    let mut serial = shell::cargo();
    serial.args(["test", "--all-targets", "--no-fail-fast"]);
    for package in SERIAL {
        parallel.args(["--exclude", package]);
        serial.args(["--package", package]);
    }
    serial.args(["--", "--test-threads=1"]);
    let mut sum = Outcome::none();
    for command in [&mut parallel, &mut serial] {
        sum += watch(
            command
                .current_dir(workspace::root())
                .envs(servers.clone())
                .env(STARTER_GGUF, starter),
        )?;
    }
    Ok(sum)
}

fn docs() -> Result<Outcome> {
    watch(packages::cargo("test")?.args(["--doc", "--no-fail-fast"]))
}

fn e2e(starter: &Path) -> Result<Outcome> {
    let folder = workspace::root().join("tests/e2e");
    let python = venv::ensure(&folder.join("requirements.txt"))?;
    let program = packages::program("macmlx", &[])?;
    watch(
        pytest(&python, &folder)
            .env(PROGRAM, program)
            .env(STARTER_GGUF, starter)
            .env(encoders::ENCODERS, crate::encoders::folder()?),
    )
}

fn downloads() -> Result<Outcome> {
    let folder = workspace::root().join("tests/downloads");
    let python = venv::ensure(&folder.join("requirements.txt"))?;
    watch(pytest(&python, &folder).env("MACMLX_HUB_DOUBLE", packages::example("hub-double")?))
}

/// Runs a folder of Python tests.
fn pytest(python: &Path, tests: &Path) -> Command {
    let mut command = Command::new(python);
    command
        .current_dir(workspace::root())
        .args(["-m", "pytest", "-p", "no:cacheprovider"])
        .arg(tests)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn watch(command: &mut Command) -> Result<Outcome> {
    let (succeeded, text) = shell::run_watched(command)?;
    Ok(Outcome {
        succeeded,
        counts: Counts::read(&text),
    })
}
