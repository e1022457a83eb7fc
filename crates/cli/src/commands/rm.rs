//! `macmlx rm`: removes a model after asking.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::bail;
use clap::Args;
use macmlx_host::{Host, running};
use serde_json::json;

use crate::{
    format,
    output::{self, Output},
    remote::Remote,
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Id, bare name or unique beginning of the model.
    model: String,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(
    arguments: &Arguments,
    host: &Host,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let entry = host.library.find(&arguments.model)?;
    if is_loaded(host, &entry.id).await {
        output
            .note("the running server holds this model in memory and keeps it until it unloads it");
    }
    let size_bytes = entry.card().map_or(0, |card| card.size_bytes);
    if !arguments.yes {
        if !io::stdin().is_terminal() {
            bail!(
                "removing `{}` needs --yes when nobody can be asked",
                entry.id
            );
        }
        let question = format!(
            "Remove {} ({}, {})? [y/N] ",
            entry.id,
            format::size(size_bytes),
            entry.path.display()
        );
        if !is_confirmed(&question)? {
            output.note("nothing was removed");
            return Ok(ExitCode::FAILURE);
        }
    }
    // By its id: what was shown is what goes.
    let removed = host.library.remove(&entry.id)?;
    if output.is_json() {
        output::json(&json!({"removed": removed.id, "freed_bytes": size_bytes}))?;
    } else {
        output::line(&format!(
            "removed {}, {} freed",
            removed.id,
            format::size(size_bytes)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn is_confirmed(question: &str) -> io::Result<bool> {
    let mut stderr = io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

async fn is_loaded(host: &Host, id: &str) -> bool {
    let Some(record) = running(&host.home) else {
        return false;
    };
    let Ok(remote) = Remote::of_record(host, &record) else {
        return false;
    };
    remote.status().await.is_ok_and(|status| {
        status["models"]
            .as_array()
            .is_some_and(|models| models.iter().any(|model| model["id"] == id))
    })
}
