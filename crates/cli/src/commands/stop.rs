//! `macmlx stop`: ends the running server in order.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::bail;
use macmlx_host::{Host, Presence, presence};
use serde_json::json;

use super::without_server;
use crate::{
    output::{self, Output},
    remote::Remote,
};

/// A server gives running answers a few seconds; more than twice that is stuck.
const PATIENCE: Duration = Duration::from_secs(15);
const STEP: Duration = Duration::from_millis(50);

pub(crate) async fn run(host: &Host, output: Output) -> anyhow::Result<ExitCode> {
    let record = match presence(&host.home) {
        Presence::Serving(record) => record,
        absent => {
            if output.is_json() {
                output::json(&json!({"stopped": false}))?;
            } else {
                output.note(&without_server(&absent, "there is nothing to stop"));
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    Remote::of_record(host, &record)?.shut_down().await?;
    let begun = Instant::now();
    // The record goes first, the home is free once the last answer has ended.
    while presence(&host.home) != Presence::Nobody {
        if begun.elapsed() > PATIENCE {
            bail!(
                "the server (pid {}) does not end; `kill {}` ends it by force",
                record.pid,
                record.pid
            );
        }
        tokio::time::sleep(STEP).await;
    }
    if output.is_json() {
        output::json(&json!({"stopped": true, "pid": record.pid, "port": record.port}))?;
    } else {
        output::line(&format!("stopped the server on port {}", record.port))?;
    }
    Ok(ExitCode::SUCCESS)
}
