//! `macmlx import`: a GGUF file becomes an MLX model.

use std::{
    ops::ControlFlow,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use macmlx_host::Host;
use serde_json::json;

use crate::{
    format,
    interrupt::{self, INTERRUPTED},
    output::{self, Output},
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// GGUF file.
    #[arg(help = "GGUF file (llama, qwen2, qwen3 or gemma3; Q4_0, Q4_1, Q8_0, F16, BF16 or F32)")]
    file: PathBuf,
    /// Name of the model; local/<FILE NAME> unless given.
    #[arg(long, value_name = "OWNER/REPO")]
    name: Option<String>,
}

pub(crate) async fn run(
    arguments: Arguments,
    host: &Host,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let options = macmlx_gguf::Options {
        id: arguments
            .name
            .unwrap_or_else(|| macmlx_gguf::default_id(&arguments.file)),
        file: arguments.file,
        models: host.models(),
    };
    let bar = if output.shows_bars() {
        ProgressBar::no_length().with_style(ProgressStyle::with_template(
            "{wide_bar} {decimal_bytes}/{decimal_total_bytes}",
        )?)
    } else {
        ProgressBar::hidden()
    };
    let asked = interrupt::listen_for_end()?;
    let is_stopped = Arc::new(AtomicBool::new(false));
    let mut import = tokio::task::spawn_blocking({
        let (is_stopped, bar) = (is_stopped.clone(), bar.clone());
        move || {
            macmlx_gguf::import(&options, &mut |progress| {
                bar.set_length(progress.total_bytes);
                bar.set_position(progress.done_bytes);
                if is_stopped.load(Ordering::Relaxed) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
        }
    });
    let imported = tokio::select! {
        imported = &mut import => imported,
        () = asked => {
            is_stopped.store(true, Ordering::Relaxed);
            import.await
        }
    };
    bar.finish_and_clear();
    let imported = match imported? {
        Err(macmlx_gguf::Error::Stopped) => {
            output.note("stopped; nothing is left of the import");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        imported => imported?,
    };
    if output.is_json() {
        output::json(&json!({
            "id": imported.id,
            "path": imported.path,
            "model_type": imported.model_type,
            "tensors": imported.tensors,
            "size_bytes": imported.size_bytes,
        }))?;
    } else {
        output::line(&format!(
            "imported {} ({}, {})",
            imported.id,
            imported.model_type,
            format::size(imported.size_bytes)
        ))?;
        output.note(&format!("try it: macmlx run {} \"Hello!\"", imported.id));
    }
    Ok(ExitCode::SUCCESS)
}
