//! `macmlx show`: one model in detail, and how its weights are or will be held.

use std::{fs, path::Path, process::ExitCode};

use clap::Args;
use macmlx_host::{Host, has_chat_template, running};
use macmlx_store::models::State;
use serde_json::json;

use super::list;
use crate::{
    format,
    output::{self, Output},
    remote::Remote,
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Id, bare name, unique beginning or path of the model.
    model: String,
}

pub(crate) async fn run(
    arguments: &Arguments,
    host: &Host,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let entry = host.library.find(&arguments.model)?;
    let held = ask_for_weights(host, &entry.id).await;
    let planned = entry.card().map(|card| host.weights_plan(card));
    let has_template = has_chat_template(&entry.path);
    if output.is_json() {
        let mut value = list::as_json(&entry);
        value["has_chat_template"] = json!(has_template);
        value["is_loaded"] = json!(held.is_some());
        value["weights"] = json!(held.or(planned));
        value["files"] = files(&entry.path)
            .into_iter()
            .map(|(name, size_bytes)| json!({"name": name, "size_bytes": size_bytes}))
            .collect();
        output::json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&entry.id)?;
    let field = |name: &str, value: &str| output::line(&format!("  {name:<14}{value}"));
    field("path", &entry.path.display().to_string())?;
    match &entry.state {
        State::Incomplete { reason } => field("incomplete", reason)?,
        State::Complete(card) => {
            field("task", format::task(card.task))?;
            field("architecture", &card.model_type)?;
            if let Some(parameters) = card.parameters {
                field("parameters", &format::count(parameters))?;
            }
            field(
                "quantization",
                card.quantization.as_deref().unwrap_or("unknown"),
            )?;
            if let Some(length) = card.context_length {
                field("context", &format!("{length} tokens"))?;
            }
            field("on disk", &format::size(card.size_bytes))?;
            field("chat template", if has_template { "yes" } else { "no" })?;
            field("modified", &format::age(card.modified_unix))?;
        }
    }
    match (held, planned) {
        (Some(held), _) => field("weights", &format!("{held}, in memory now"))?,
        (None, Some(planned)) => field("weights", &format!("{planned}, once loaded"))?,
        (None, None) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// How the running server holds the model, when it does.
async fn ask_for_weights(host: &Host, id: &str) -> Option<String> {
    let remote = Remote::of_record(host, &running(&host.home)?).ok()?;
    let status = remote.status().await.ok()?;
    let models = status["models"].as_array()?;
    let model = models.iter().find(|model| model["id"] == id)?;
    model["weights"].as_str().map(str::to_owned)
}

/// Names and sizes of a folder's files, sorted.
fn files(folder: &Path) -> Vec<(String, u64)> {
    let mut files: Vec<(String, u64)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let metadata = fs::metadata(entry.path()).ok()?;
            let name = entry.file_name().into_string().ok()?;
            metadata.is_file().then_some((name, metadata.len()))
        })
        .collect();
    files.sort();
    files
}
