//! The commands, one file each.

mod alias;
mod import;
mod keys;
mod list;
mod ps;
mod pull;
mod rm;
mod run;
mod serve;
mod show;
mod stop;

use std::process::ExitCode;

use clap::Subcommand;
use macmlx_host::{Host, Owner, Presence};

use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve models to clients of OpenAI, Anthropic and Ollama.
    Serve(serve::Arguments),
    /// Ask a model one question, or chat with it.
    Run(run::Arguments),
    /// List the models on this machine.
    #[command(visible_alias = "ls")]
    List,
    /// Show what the running server holds.
    Ps,
    /// Show what is known of a model.
    #[command(visible_alias = "info")]
    Show(show::Arguments),
    /// Download a model from the Hugging Face Hub.
    #[command(visible_alias = "get")]
    Pull(pull::Arguments),
    /// Turn a GGUF file into an MLX model, without loss.
    Import(import::Arguments),
    /// Give models other names, such as those a client insists on.
    Alias(alias::Arguments),
    /// Manage the keys clients must send.
    Keys(keys::Arguments),
    /// Remove a model from this machine.
    Rm(rm::Arguments),
    /// Stop the running server.
    Stop,
}

pub(crate) async fn run(command: Command, host: &Host, output: Output) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(arguments) => serve::run(arguments, host, output).await,
        Command::Run(arguments) => run::run(arguments, host, output).await,
        Command::List => list::run(host, output),
        Command::Ps => ps::run(host, output).await,
        Command::Show(arguments) => show::run(&arguments, host, output).await,
        Command::Pull(arguments) => pull::run(arguments, host, output).await,
        Command::Import(arguments) => import::run(arguments, host, output).await,
        Command::Alias(arguments) => alias::run(&arguments, host, output),
        Command::Keys(arguments) => keys::run(&arguments, host, output),
        Command::Rm(arguments) => rm::run(&arguments, host, output).await,
        Command::Stop => stop::run(host, output).await,
    }
}

/// Why no server can be asked, and what can be done where no process is at work.
fn without_server(presence: &Presence, otherwise: &str) -> String {
    match presence {
        Presence::WithoutDoor(holder) if holder.owner == Owner::Gui => format!(
            "the macMLX app is running (pid {}) and its server is off; switch it on or quit the app \
             in the menu bar",
            holder.pid
        ),
        Presence::WithoutDoor(_) => "a server is just starting; try again in a moment".into(),
        Presence::Nobody | Presence::Serving(_) => format!("no server is running; {otherwise}"),
    }
}
