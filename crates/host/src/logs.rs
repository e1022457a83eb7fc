//! Where log lines go: warnings to standard error; for an application everything of note, also into
//! its log, which the window shows.

use std::{fmt::Write, sync::Arc};

use anyhow::Context;
use macmlx_store::logs::{Category, Level, Logs, NewEntry};
use serde_json::{Map, Value};
use tracing::{Event, Subscriber, field};
use tracing_subscriber::{
    EnvFilter, Layer, fmt, layer, layer::SubscriberExt, util::SubscriberInitExt,
};

use crate::Host;

/// Lines to standard error from now on, warnings only unless the environment wants more. Once a
/// process.
pub fn to_stderr(host: &Host) -> anyhow::Result<()> {
    let stderr = stderr_layer().with_filter(filter(host, "warn")?);
    tracing_subscriber::registry().with(stderr).init();
    Ok(())
}

/// Lines to standard error and into the log of the home from now on. Once a process; at its end
/// [`Logs::close`] writes what is left.
pub fn start(host: &Host) -> anyhow::Result<Arc<Logs>> {
    let folder = host.home.logs();
    host.home.create()?;
    let live = host.live.clone();
    host.logs
        .keep_in(&folder, move || live.get().log_retention_days)
        .with_context(|| format!("cannot write logs to {}", folder.display()))?;
    let stderr = stderr_layer().with_filter(filter(host, "info")?);
    let kept = Collector(host.logs.clone()).with_filter(filter(host, "info")?);
    tracing_subscriber::registry()
        .with(stderr)
        .with(kept)
        .init();
    Ok(host.logs.clone())
}

fn filter(host: &Host, default: &str) -> anyhow::Result<EnvFilter> {
    let wanted = host.environment.log_filter.as_deref().unwrap_or(default);
    EnvFilter::try_new(wanted)
        .context("MACMLX_LOG is not a log filter such as `info` or `macmlx_engine=debug`")
}

fn stderr_layer<S>() -> impl Layer<S>
where
    S: Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
}

/// Turns events into entries of a log.
struct Collector(Arc<Logs>);

impl<S: Subscriber> Layer<S> for Collector {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        let metadata = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = match *metadata.level() {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG => Level::Debug,
            tracing::Level::TRACE => Level::Trace,
        };
        let category = Category::of_target(metadata.target());
        self.0.note(NewEntry::now(
            level,
            category,
            fields.message,
            fields.others,
        ));
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &field::Field, value: Value) {
        self.others.insert(field.name().to_owned(), value);
    }
}

impl field::Visit for Fields {
    fn record_debug(&mut self, field: &field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            // Writing into a text cannot fail.
            let _ = write!(self.message, "{value:?}");
        } else {
            self.put(field, format!("{value:?}").into());
        }
    }

    fn record_str(&mut self, field: &field::Field, value: &str) {
        if field.name() == "message" {
            self.message.push_str(value);
        } else {
            self.put(field, value.into());
        }
    }

    fn record_bool(&mut self, field: &field::Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &field::Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &field::Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &field::Field, value: f64) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use macmlx_store::logs::Query;

    use super::*;

    #[test]
    fn events_become_entries() {
        let logs = Arc::new(Logs::default());
        let subscriber = tracing_subscriber::registry().with(Collector(logs.clone()));
        tracing::subscriber::with_default(subscriber, || {
            let error = std::io::Error::other("full");
            tracing::warn!(target: "macmlx_store::hub::pull", model = "m", bytes = 3_u64, %error, "stopped at {}", 7);
        });
        let page = logs.find(&Query {
            limit: 9,
            ..Query::default()
        });
        let entry = &page.entries[0];
        assert_eq!(entry.message, "stopped at 7");
        assert_eq!(entry.level, Level::Warn);
        assert_eq!(entry.category, Category::Download);
        assert_eq!(
            Value::Object(entry.fields.clone()),
            serde_json::json!({"model": "m", "bytes": 3, "error": "full"})
        );
    }
}
