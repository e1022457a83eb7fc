//! Where log lines go: warnings to standard error; for a server everything of note, also into a
//! file a day.

use std::fs;

use anyhow::Context;
use macmlx_host::Host;
use tracing_appender::{
    non_blocking::WorkerGuard,
    rolling::{Builder, Rotation},
};
use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::commands::Command;

/// Writes what is left when dropped.
pub(crate) struct Logs {
    _file: Option<WorkerGuard>,
}

pub(crate) fn start(host: &Host, command: &Command) -> anyhow::Result<Logs> {
    let is_server = matches!(command, Command::Serve(_));
    let default = if is_server { "info" } else { "warn" };
    let filter = host.environment.log_filter.as_deref().unwrap_or(default);
    let filter = || {
        EnvFilter::try_new(filter)
            .context("MACMLX_LOG is not a log filter such as `info` or `macmlx_engine=debug`")
    };
    let stderr = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
        .with_filter(filter()?);
    let subscriber = tracing_subscriber::registry().with(stderr);
    if !is_server {
        subscriber.init();
        return Ok(Logs { _file: None });
    }
    let folder = host.home.logs();
    host.home.create()?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let file = Builder::new()
        .rotation(Rotation::DAILY)
        .filename_prefix("macmlx")
        .filename_suffix("log")
        .max_log_files(host.settings.log_retention_days.max(1) as usize)
        .build(&folder)
        .with_context(|| format!("cannot write logs to {}", folder.display()))?;
    let (writer, guard) = tracing_appender::non_blocking(file);
    let file = fmt::layer()
        .with_writer(writer)
        .with_ansi(false)
        .with_filter(filter()?);
    subscriber.with(file).init();
    Ok(Logs { _file: Some(guard) })
}
