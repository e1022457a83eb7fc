//! `macmlx pull`: downloads a model; what an interrupted pull left is used by the next one.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use macmlx_host::Host;
use macmlx_store::hub::{self, Event};
use serde_json::json;

use crate::{
    format,
    interrupt::{self, INTERRUPTED},
    output::{self, Output},
};

/// Without bars, a line this often.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// OWNER/NAME on the hub, with @REVISION if wanted; a bare name means mlx-community's.
    model: String,
}

pub(crate) async fn run(
    arguments: Arguments,
    host: &Host,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let hub = host.hub()?;
    let request = hub::Request {
        reference: arguments.model,
        models: host.models(),
        downloads: host.home.downloads(),
    };
    let mut display = Display::new(output)?;
    let pulled = {
        let mut report = |event| display.show(&event);
        tokio::select! {
            pulled = hub::pull(&hub, &request, &mut report) => Some(pulled),
            pressed = interrupt::pressed() => {
                pressed?;
                None
            }
        }
    };
    display.bar.finish_and_clear();
    let Some(pulled) = pulled else {
        output.note("stopped; what is here is kept, pull again to go on");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let pulled = pulled?;
    if output.is_json() {
        output::json(&json!({
            "id": pulled.id,
            "path": pulled.path,
            "commit": pulled.commit,
            "size_bytes": pulled.size_bytes,
        }))?;
    } else {
        output::line(&format!(
            "pulled {} ({})",
            pulled.id,
            format::size(pulled.size_bytes)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A bar on a terminal, a line now and then elsewhere, nothing beside JSON.
struct Display {
    output: Output,
    bar: ProgressBar,
    total_bytes: u64,
    files: usize,
    last_line: Instant,
}

impl Display {
    fn new(output: Output) -> anyhow::Result<Self> {
        let bar = if output.shows_bars() {
            ProgressBar::no_length().with_style(ProgressStyle::with_template(
                "{msg}\n{wide_bar} {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}  {eta}",
            )?)
        } else {
            ProgressBar::hidden()
        };
        Ok(Self {
            output,
            bar,
            total_bytes: 0,
            files: 0,
            last_line: Instant::now(),
        })
    }

    fn show(&mut self, event: &Event) {
        match event {
            Event::Started {
                id,
                files,
                total_bytes,
                resumed_bytes,
            } => {
                self.total_bytes = *total_bytes;
                self.files = *files;
                self.bar.set_length(*total_bytes);
                self.bar.set_position(*resumed_bytes);
                self.bar.reset_eta();
                let total = format::size(*total_bytes);
                self.line(&if *resumed_bytes > 0 {
                    format!(
                        "pulling {id}: resuming at {} of {total}",
                        format::size(*resumed_bytes)
                    )
                } else {
                    format!("pulling {id}: {files} files, {total}")
                });
            }
            Event::File {
                index,
                path,
                size_bytes,
                ..
            } => {
                let text = format!(
                    "{}/{} {path} ({})",
                    index + 1,
                    self.files,
                    format::size(*size_bytes)
                );
                self.bar.set_message(text.clone());
                if self.bar.is_hidden() {
                    self.line(&text);
                }
            }
            Event::Progress { done_bytes } => {
                self.bar.set_position(*done_bytes);
                if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_INTERVAL {
                    self.line(&format!(
                        "{} of {}",
                        format::size(*done_bytes),
                        format::size(self.total_bytes)
                    ));
                }
            }
            Event::Verifying { path } => self.bar.set_message(format!("verifying {path}")),
        }
    }

    fn line(&mut self, text: &str) {
        self.last_line = Instant::now();
        if !self.output.is_json() {
            self.bar.suspend(|| self.output.note(text));
        }
    }
}
