//! `macmlx serve`: the server in the foreground.

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use macmlx_host::{App, AppOptions, DoorOptions, Host, OpenDoor, Owner};
use macmlx_settings::{HostPattern, OriginPattern, UnknownModels, env};
use serde_json::json;

use crate::{
    interrupt,
    output::{self, Output},
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Address to listen on; anything but this machine's own needs an API key.
    #[arg(long, env = env::MACMLX_HOST)]
    host: Option<String>,
    /// Port to listen on; when it is taken the next free one is used (0: any free one).
    #[arg(long, env = env::MACMLX_PORT)]
    port: Option<u16>,
    /// Fail when the port is taken.
    #[arg(long)]
    fixed_port: bool,
    /// Model to load right away, which also answers to names nobody here knows; others are loaded
    /// when a client asks for them.
    #[arg(long, env = env::MACMLX_MODEL)]
    model: Option<String>,
    /// What becomes of requests for models that are not here, such as `gpt-4o`.
    #[arg(long, value_name = "WHAT")]
    unknown_models: Option<UnknownModelsArgument>,
    /// Key that clients must send.
    #[arg(long, env = env::MACMLX_API_KEY, hide_env_values = true)]
    api_key: Option<String>,
    /// Another name this server may be reached under, such as `mini.example.org` or
    /// `*.example.org`, beside those of the settings (may be repeated; `*` is any).
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<HostPattern>,
    /// A web site whose pages may call this server, such as `https://chat.example.org`,
    /// `http://192.168.1.*` or `chrome-extension://*`, beside those of the settings (may be
    /// repeated; `*` is any).
    #[arg(long, value_name = "https://SITE")]
    allow_origin: Vec<OriginPattern>,
    /// Sequences that are decoded together.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    max_batch: Option<u32>,
    /// Requests that may wait before new ones are turned away.
    #[arg(long, value_name = "COUNT")]
    max_waiting: Option<u32>,
    /// Prompt tokens computed between two decode steps.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    prefill_chunk: Option<u32>,
    /// On CPUs: weights that need no more than this many gigabytes as float32 are held that way.
    #[arg(long, value_name = "GB")]
    dequantize_budget: Option<f64>,
    /// Bits of the KV cache (4 or 8); without it the cache keeps the model's precision.
    #[arg(long, value_name = "BITS", value_parser = ["4", "8"])]
    kv_bits: Option<String>,
    /// Play the answers of this script in place of the model's own.
    #[cfg(feature = "playback")]
    #[arg(long, value_name = "SCRIPT")]
    playback: Option<std::path::PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum UnknownModelsArgument {
    /// The default model answers.
    Default,
    /// They are refused.
    Refuse,
}

pub(crate) async fn run(
    arguments: Arguments,
    host: &Host,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let mut host = host.clone();
    let settings = &mut host.settings;
    overwrite(&mut settings.max_batch_size, arguments.max_batch);
    overwrite(&mut settings.max_waiting_requests, arguments.max_waiting);
    overwrite(&mut settings.prefill_chunk_tokens, arguments.prefill_chunk);
    overwrite(
        &mut settings.dequantize_budget_gb,
        arguments.dequantize_budget,
    );
    if let Some(bits) = arguments.kv_bits {
        settings.kv_bits = Some(bits.parse()?);
    }
    let options = AppOptions {
        api_key: arguments.api_key,
        model: arguments.model,
        unknown_models: arguments.unknown_models.map(|argument| match argument {
            UnknownModelsArgument::Default => UnknownModels::Default,
            UnknownModelsArgument::Refuse => UnknownModels::Refuse,
        }),
        allowed_hosts: arguments.allow_host,
        allowed_origins: arguments.allow_origin,
        #[cfg(feature = "playback")]
        playback: arguments.playback,
        ..AppOptions::default()
    };
    // This comes before the greeting, since its reader may ask for the end at once.
    let asked = interrupt::listen_for_end()?;
    let app = App::start(host.clone(), options, Owner::Cli).await?;
    let door = DoorOptions {
        host: arguments.host,
        port: arguments.port,
        may_move: !arguments.fixed_port,
        ..DoorOptions::default()
    };
    let door = app.open_door(door).await?;
    greet(&app, &door, &host, output)?;
    tokio::select! {
        () = asked => {}
        () = app.stopping() => {}
    }
    output.note("stopping; running answers get a few seconds (Ctrl-C again ends at once)");
    app.shut_down().await;
    Ok(ExitCode::SUCCESS)
}

fn overwrite<T>(setting: &mut T, argument: Option<T>) {
    if let Some(value) = argument {
        *setting = value;
    }
}

/// Says where the server is and how to use it.
fn greet(app: &App, door: &OpenDoor, host: &Host, output: Output) -> anyhow::Result<()> {
    let url = door.url();
    let ui_url = app.ui_url(door);
    if output.is_json() {
        output::json(&json!({
            "url": url,
            "openai_base_url": format!("{url}/v1"),
            "address": door.address,
            "wanted_port": door.wanted_port,
            "needs_api_key": door.needs_api_key,
            "ui_url": ui_url,
            "pid": std::process::id(),
        }))?;
        return Ok(());
    }
    if let Some(wanted) = door.wanted_port {
        output.note(&format!(
            "port {wanted} is taken; using {}",
            door.address.port()
        ));
    }
    output::line(&format!("macMLX serves at {url}"))?;
    let key = if door.needs_api_key {
        "your API key"
    } else {
        "any text as API key"
    };
    output::line(&format!(
        "OpenAI clients: base URL {url}/v1, {key} (OPENAI_BASE_URL={url}/v1)"
    ))?;
    output::line(&format!(
        "Anthropic clients: base URL {url}, {key} (ANTHROPIC_BASE_URL={url})"
    ))?;
    output::line(&format!("Ollama clients: OLLAMA_HOST={url}"))?;
    output::line(&format!(
        "control: {url}/x/status with the token in {}",
        host.home.control_token_file().display()
    ))?;
    // This line lets its reader do everything, so it goes to people and not into files.
    if io::stdout().is_terminal() {
        output::line(&format!("in a browser: {ui_url}"))?;
    }
    let models = host.library.entries();
    let usable = models.iter().filter(|entry| entry.card().is_some()).count();
    if usable == 0 {
        output.note(
            "there are no models yet: `macmlx pull OWNER/MODEL` or `macmlx import FILE.gguf`",
        );
    }
    output.note("Ctrl-C stops it");
    Ok(())
}
