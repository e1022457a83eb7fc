//! `cargo xtask …`: sets the machine up, runs macMLX from a clone, tests it and checks it.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

mod agents;
mod bench;
mod check;
mod encoders;
mod layers;
mod npm;
mod packages;
mod places;
mod playback;
mod pypi;
mod run;
mod setup;
mod shell;
mod sizes;
mod starter;
mod tauri_driver;
mod test;
mod tool;
mod ui;
mod venv;
mod workspace;

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Work on macMLX")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what is missing and put MLX where Cargo finds it.
    Setup,
    /// Set up, build, fetch a model if there is none, and open the app; without a display, serve.
    Run {
        /// `--headless` serves in any case, `--model owner/repo` (pulled if need be), and options of
        /// `macmlx serve`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run every test, or the named suites.
    Test {
        #[arg(value_enum)]
        suites: Vec<test::Suite>,
    },
    /// Everything else that a change must pass: format, lints, layers, sizes, dependencies, typos.
    Check,
    /// Run real coding agents against macMLX (downloads them at first: several gigabytes).
    Agents(agents::Options),
    /// Measure our server against mlx-lm's on this machine.
    Bench(bench::Options),
    /// Make the files anew that are made from others: the UI's types of the control routes, and of the keys of its strings.
    Generate,
    /// Check that crates depend on each other only as the design allows.
    Layers,
    /// Check that source files stay short.
    Sizes,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Setup => setup::run(),
        Command::Run { arguments } => run::run(arguments),
        Command::Test { suites } => test::run(&suites),
        Command::Check => check::run(),
        Command::Agents(options) => agents::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Generate => setup::run().and_then(|()| ui::generate()),
        Command::Layers => layers::run(),
        Command::Sizes => sizes::run(),
    };
    if let Err(error) = outcome {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
