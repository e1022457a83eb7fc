//! `cargo xtask …`: sets the machine up, runs macMLX from a clone, tests it and checks it.

#![expect(clippy::print_stdout, reason = "a command-line tool")]

mod pypi;
mod setup;
mod shell;
mod workspace;

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
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Setup => setup::run(),
    }
}
