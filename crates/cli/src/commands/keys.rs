//! `macmlx keys`: the named keys clients may use.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use macmlx_host::Host;
use serde_json::json;

use crate::{
    format,
    output::{self, Output},
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key and print it, this once; only its hash is kept.
    Add {
        /// Who or what it is for.
        name: String,
    },
    /// List the names of the keys.
    #[command(visible_alias = "ls")]
    List,
    /// Make a key useless, also for a server that runs.
    #[command(visible_alias = "rm")]
    Remove { name: String },
}

pub(crate) fn run(arguments: &Arguments, host: &Host, output: Output) -> anyhow::Result<ExitCode> {
    let keys = &host.api_keys;
    match &arguments.action {
        Action::Add { name } => {
            host.home.create()?;
            let key = keys.add(name)?;
            if output.is_json() {
                output::json(&json!({"name": name, "key": key}))?;
            } else {
                output::line(&key)?;
                output.note("keep it: it is not shown again");
            }
        }
        Action::List => list(&keys.list()?, output)?,
        Action::Remove { name } => {
            if !keys.remove(name)? {
                bail!("there is no key named `{name}`");
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

fn list(keys: &[macmlx_settings::NamedKey], output: Output) -> anyhow::Result<()> {
    if output.is_json() {
        let rows: Vec<_> = keys
            .iter()
            .map(|key| json!({"name": key.name, "created": format::date(key.created_unix)}))
            .collect();
        output::json(&json!({"keys": rows}))?;
        return Ok(());
    }
    if keys.is_empty() {
        output.note("no keys; `macmlx keys add NAME` makes one");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = keys
        .iter()
        .map(|key| vec![key.name.clone(), format::age(key.created_unix)])
        .collect();
    output::table(&["NAME", "MADE"], &rows)?;
    Ok(())
}
