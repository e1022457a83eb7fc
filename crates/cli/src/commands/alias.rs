//! `macmlx alias`: other names for models.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use macmlx_host::Host;
use serde_json::json;

use crate::output::{self, Output};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Have a name stand for a model, whatever it stood for before.
    Add {
        /// The new name, such as `gpt-4o`.
        name: String,
        /// Id, bare name or unique beginning of the model.
        model: String,
    },
    /// List the names and what they stand for.
    #[command(visible_alias = "ls")]
    List,
    /// Forget a name; the model stays.
    #[command(visible_alias = "rm")]
    Remove { name: String },
}

pub(crate) fn run(arguments: &Arguments, host: &Host, output: Output) -> anyhow::Result<ExitCode> {
    match &arguments.action {
        Action::Add { name, model } => add(name, model, host, output)?,
        Action::List => list(host, output)?,
        Action::Remove { name } => {
            if !host.aliases.remove(name)? {
                bail!("there is no alias `{name}`");
            }
            if output.is_json() {
                output::json(&json!({"removed": name}))?;
            } else {
                output::line(&format!("removed {name}"))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn add(name: &str, model: &str, host: &Host, output: Output) -> anyhow::Result<()> {
    // The id rather than what was typed: an abbreviation may mean another model tomorrow.
    let id = host.resolve(model)?;
    if host.library.entries().iter().any(|entry| entry.id == name) {
        bail!("`{name}` is a model's own name");
    }
    host.aliases.add(name, &id)?;
    if output.is_json() {
        output::json(&json!({"name": name, "model": id}))?;
    } else {
        output::line(&format!("{name} stands for {id}"))?;
    }
    Ok(())
}

fn list(host: &Host, output: Output) -> anyhow::Result<()> {
    let aliases = host.aliases.all();
    if output.is_json() {
        let rows: Vec<_> = aliases
            .iter()
            .map(|(name, model)| json!({"name": name, "model": model}))
            .collect();
        output::json(&json!({"aliases": rows}))?;
        return Ok(());
    }
    if aliases.is_empty() {
        output.note("no aliases; `macmlx alias add NAME MODEL` makes one");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = aliases
        .iter()
        .map(|(name, model)| vec![name.clone(), model.clone()])
        .collect();
    output::table(&["NAME", "MODEL"], &rows)?;
    Ok(())
}
