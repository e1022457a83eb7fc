//! `macmlx ps`: the running server and the models it holds.

use std::{process::ExitCode, time::Duration};

use macmlx_host::{Host, ModelTask, Presence, presence};
use serde_json::{Value, json};

use super::without_server;
use crate::{
    format,
    output::{self, Output},
    remote::Remote,
};

pub(crate) async fn run(host: &Host, output: Output) -> anyhow::Result<ExitCode> {
    let record = match presence(&host.home) {
        Presence::Serving(record) => record,
        absent => {
            if output.is_json() {
                output::json(&json!({"server": null, "models": []}))?;
            } else {
                output.note(&without_server(&absent, "`macmlx serve` starts one"));
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    let remote = Remote::of_record(host, &record)?;
    let mut status = remote.status().await?;
    if let Some(models) = status["models"].as_array_mut() {
        for model in models {
            let task = task(host, model).map(format::task);
            model["task"] = json!(task);
        }
    }
    if output.is_json() {
        let mut server = json!(record);
        server["url"] = json!(remote.base());
        for key in [
            "uptime_seconds",
            "memory_used_gb",
            "requests_total",
            "requests_running",
            "tokens_generated_total",
        ] {
            server[key] = status[key].clone();
        }
        output::json(&json!({"server": server, "models": status["models"]}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let uptime = Duration::from_secs_f64(status["uptime_seconds"].as_f64().unwrap_or_default());
    output.note(&format!(
        "server at {} (pid {}), up {}",
        remote.base(),
        record.pid,
        format::duration(uptime)
    ));
    let models = status["models"].as_array().map_or(&[][..], Vec::as_slice);
    let rows: Vec<Vec<String>> = models.iter().map(row).collect();
    output::table(
        &[
            "NAME",
            "TASK",
            "MEMORY",
            "WEIGHTS",
            "ACTIVE",
            "IDLE",
            "LEAVES IN",
        ],
        &rows,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// `None`: its files are gone.
fn task(host: &Host, model: &Value) -> Option<ModelTask> {
    let entry = host.library.find(model["id"].as_str()?).ok()?;
    entry.card().map(|card| card.task)
}

fn row(model: &Value) -> Vec<String> {
    let number = |key: &str| model[key].as_u64().unwrap_or_default();
    let text = |key: &str| model[key].as_str().unwrap_or_default().to_owned();
    vec![
        text("id"),
        text("task"),
        format::size(number("memory_bytes")),
        text("weights"),
        number("active_requests").to_string(),
        format::duration(Duration::from_secs(number("idle_seconds"))),
        match model["expires_in_seconds"].as_u64() {
            Some(seconds) => format::duration(Duration::from_secs(seconds)),
            None => "never".into(),
        },
    ]
}
