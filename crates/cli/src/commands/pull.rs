//! `macmlx pull`: downloads a model; what an interrupted pull left is used by the next one.

use std::{
    collections::HashSet,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::bail;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use macmlx_host::Host;
use macmlx_store::downloads::{FileState, Follow, Job, State};
use serde_json::json;

use crate::{
    format,
    interrupt::{self, INTERRUPTED},
    output::{self, Output},
};

/// How often a line is printed where no bars are shown.
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
    let downloads = host.downloads();
    let mut follow = downloads.follow(&arguments.model).await?;
    let mut display = Display::new(output)?;
    let ended = tokio::select! {
        ended = last(&mut follow, &mut display) => Some(ended),
        pressed = interrupt::pressed() => {
            pressed?;
            None
        }
    };
    display.bar.finish_and_clear();
    let Some(ended) = ended else {
        follow.stop().await;
        output.note("stopped; what is here is kept, pull again to go on");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let job = match ended {
        Some(Job {
            state: State::Failed,
            error: Some(error),
            ..
        }) => bail!(error.message),
        Some(job) if job.state == State::Done => job,
        _ => bail!("the download was stopped; pull again to go on"),
    };
    let path = downloads.destination(&job.model);
    if output.is_json() {
        output::json(&json!({
            "id": job.model,
            "path": path,
            "commit": job.commit,
            "size_bytes": job.total_bytes,
        }))?;
    } else {
        output::line(&format!(
            "pulled {} ({})",
            job.model,
            format::size(job.done_bytes)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows a download until it rests; `None` if it was cancelled.
async fn last(follow: &mut Follow, display: &mut Display) -> Option<Job> {
    let mut last = None;
    while let Some(job) = follow.next().await {
        display.show(&job);
        last = Some(job);
    }
    last
}

/// A bar on a terminal, a line now and then elsewhere, nothing beside JSON.
struct Display {
    output: Output,
    bar: ProgressBar,
    has_begun: bool,
    /// Files that were named.
    named: HashSet<String>,
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
            has_begun: false,
            named: HashSet::new(),
            last_line: Instant::now(),
        })
    }

    fn show(&mut self, job: &Job) {
        let (Some(total_bytes), State::Downloading | State::Verifying) =
            (job.total_bytes, job.state)
        else {
            return;
        };
        let total = format::size(total_bytes);
        if !self.has_begun {
            self.has_begun = true;
            self.bar.set_length(total_bytes);
            self.bar.set_position(job.done_bytes);
            self.bar.reset_eta();
            self.line(&if job.done_bytes > 0 {
                format!(
                    "pulling {}: resuming at {} of {total}",
                    job.model,
                    format::size(job.done_bytes)
                )
            } else {
                format!("pulling {}: {} files, {total}", job.model, job.files.len())
            });
        }
        self.bar.set_position(job.done_bytes);
        for (index, file) in job.files.iter().enumerate() {
            if file.state != FileState::Downloading || !self.named.insert(file.path.clone()) {
                continue;
            }
            let text = format!(
                "{}/{} {} ({})",
                index + 1,
                job.files.len(),
                file.path,
                format::size(file.size_bytes)
            );
            self.bar.set_message(text.clone());
            if self.bar.is_hidden() {
                self.line(&text);
            }
        }
        if job.state == State::Verifying {
            self.bar.set_message("verifying");
        } else if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_INTERVAL {
            self.line(&format!("{} of {total}", format::size(job.done_bytes)));
        }
    }

    fn line(&mut self, text: &str) {
        self.last_line = Instant::now();
        if !self.output.is_json() {
            self.bar.suspend(|| self.output.note(text));
        }
    }
}
