//! `macmlx list`: the models on this machine, usable or not.

use std::process::ExitCode;

use macmlx_host::Host;
use macmlx_store::models::{Entry, State};
use serde_json::{Value, json};

use crate::{
    format,
    output::{self, Output},
};

pub(crate) fn run(host: &Host, output: Output) -> anyhow::Result<ExitCode> {
    let entries = host.library.entries();
    if output.is_json() {
        let models: Vec<Value> = entries.iter().map(as_json).collect();
        output::json(&json!({"models": models}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        output.note(&format!(
            "no models in {}; `macmlx pull OWNER/MODEL` or `macmlx import FILE.gguf` brings one",
            host.library.root().display()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    output::table(
        &[
            "NAME",
            "TASK",
            "SIZE",
            "QUANT",
            "PARAMETERS",
            "CONTEXT",
            "MODIFIED",
        ],
        &rows,
    )?;
    for entry in &entries {
        if let State::Incomplete { reason } = &entry.state {
            output.note(&format!("{} cannot be used: {reason}", entry.id));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(entry: &Entry) -> Vec<String> {
    let unknown = || "-".to_owned();
    match &entry.state {
        State::Complete(card) => vec![
            entry.id.clone(),
            format::task(card.task).to_owned(),
            format::size(card.size_bytes),
            card.quantization.clone().unwrap_or_else(unknown),
            card.parameters.map_or_else(unknown, format::count),
            card.context_length
                .map_or_else(unknown, |length| length.to_string()),
            format::age(card.modified_unix),
        ],
        State::Incomplete { .. } => vec![entry.id.clone(), "incomplete".into()],
    }
}

/// A model as `list` and `show` print it.
pub(super) fn as_json(entry: &Entry) -> Value {
    match &entry.state {
        State::Complete(card) => json!({
            "id": entry.id,
            "path": entry.path,
            "is_complete": true,
            "model_type": card.model_type,
            "task": card.task,
            "size_bytes": card.size_bytes,
            "quantization": card.quantization,
            "parameters": card.parameters,
            "context_length": card.context_length,
            "modified": format::date(card.modified_unix),
        }),
        State::Incomplete { reason } => json!({
            "id": entry.id,
            "path": entry.path,
            "is_complete": false,
            "reason": reason,
        }),
    }
}
