//! `macmlx`: language models on this machine, from the command line.

mod commands;
mod format;
mod interrupt;
mod output;
mod remote;

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use macmlx_host::{Host, logs};
use macmlx_settings::Environment;

use crate::{commands::Command, output::Output};

/// Runs language models on this machine and serves them to clients of OpenAI, Anthropic and Ollama.
#[derive(Debug, Parser)]
#[command(name = "macmlx", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print JSON in a stable shape instead of text.
    #[arg(long, global = true)]
    json: bool,
    /// Print errors only.
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// How long the engine may take to end what cannot be broken off, such as loading weights.
const ENGINE_GRACE: Duration = Duration::from_mins(1);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let output = Output::new(arguments.json, arguments.quiet);
    match start(arguments.command, output) {
        Ok(code) => code,
        // The reader of the pipe has closed it.
        Err(error) if output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output.failure(&error);
            ExitCode::FAILURE
        }
    }
}

fn start(command: Command, output: Output) -> anyhow::Result<ExitCode> {
    let host = Host::open(Environment::from_process())?;
    if matches!(command, Command::Serve(_)) {
        logs::start(&host)?;
    } else {
        logs::to_stderr(&host)?;
    }
    for warning in &host.warnings {
        output.note(warning);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(Box::pin(commands::run(command, &host, output)));
    // A line editor may still wait for a key on another thread.
    runtime.shutdown_background();
    if !macmlx_host::wait_for_end(ENGINE_GRACE) {
        tracing::warn!("the engine did not end in time");
    }
    host.logs.close();
    result
}
