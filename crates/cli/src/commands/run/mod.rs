//! `macmlx run`: one answer for a prompt or a pipe, a conversation on a terminal.
//!
//! It speaks to the running server or, when there is none, to one of its own that no other process
//! can reach and that ends with the command. So there is one way to an answer, the clients' own.

mod answer;
mod conversation;

use std::{
    io::{self, IsTerminal, Read},
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use macmlx_host::{App, AppOptions, DoorOptions, Host, ModelTask, Owner, Presence, presence};
use serde_json::{Map, Value, json};

use crate::{
    output::{self, Output},
    remote::Remote,
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Id, bare name, unique beginning or path of the model.
    model: String,
    /// What to ask; what is piped in is added to it. Without either, a conversation begins.
    prompt: Vec<String>,
    /// What the model is told ahead of the conversation.
    #[arg(long)]
    system: Option<String>,
    /// 0 always gives the likeliest answer.
    #[arg(long)]
    temperature: Option<f64>,
    #[arg(long)]
    top_p: Option<f64>,
    /// Same seed, same answer.
    #[arg(long)]
    seed: Option<u64>,
    /// Longest answer.
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<u32>,
}

/// What is asked and how, apart from the messages.
struct Session {
    remote: Remote,
    model: String,
    options: Map<String, Value>,
    output: Output,
}

pub(crate) async fn run(
    arguments: Arguments,
    host: &Host,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let model = host.resolve_for(&arguments.model, ModelTask::Generate)?;
    let prompt = prompt(&arguments.prompt)?;
    if prompt.is_none() && (output.is_json() || !io::stdin().is_terminal()) {
        anyhow::bail!("there is nothing to ask; give a prompt or pipe one in");
    }
    let (remote, own_app) = connect(host, output).await?;
    let session = Session {
        remote,
        model,
        options: options(&arguments),
        output,
    };
    let system = arguments
        .system
        .as_ref()
        .map(|text| json!({"role": "system", "content": text}));
    let result = match prompt {
        Some(prompt) => once(&session, system, &prompt).await,
        None => conversation::hold(&session, system, host.home.prompt_history_file()).await,
    };
    if let Some(app) = own_app {
        app.shut_down().await;
    }
    result?;
    Ok(ExitCode::SUCCESS)
}

/// The running server, or one of this process.
async fn connect(host: &Host, output: Output) -> anyhow::Result<(Remote, Option<App>)> {
    match presence(&host.home) {
        Presence::Serving(record) => return Ok((Remote::of_record(host, &record)?, None)),
        Presence::WithoutDoor(holder) if holder.owner == Owner::Gui => output.note(&format!(
            "the macMLX app is running (pid {}) and its server is off, so the model is loaded once \
             more for this command; switch the server on there to share it",
            holder.pid
        )),
        Presence::WithoutDoor(_) | Presence::Nobody => {}
    }
    let options = AppOptions {
        is_private: true,
        ..AppOptions::default()
    };
    let app = App::start(host.clone(), options, Owner::Cli).await?;
    let door = app.open_door(DoorOptions::default()).await?;
    Ok((Remote::of_app(&app, &door)?, Some(app)))
}

async fn once(session: &Session, system: Option<Value>, prompt: &str) -> anyhow::Result<()> {
    let mut messages: Vec<Value> = system.into_iter().collect();
    messages.push(json!({"role": "user", "content": prompt}));
    let answer = answer::ask(session, &messages).await?;
    if session.output.is_json() {
        output::json(&answer)?;
    }
    Ok(())
}

/// The words of the command line, then what is piped in.
fn prompt(words: &[String]) -> anyhow::Result<Option<String>> {
    let mut parts = Vec::new();
    if !words.is_empty() {
        parts.push(words.join(" "));
    }
    if !io::stdin().is_terminal() {
        let mut piped = String::new();
        io::stdin()
            .read_to_string(&mut piped)
            .context("cannot read what is piped in as text")?;
        if !piped.trim().is_empty() {
            parts.push(piped.trim_end().to_owned());
        }
    }
    Ok((!parts.is_empty()).then(|| parts.join("\n\n")))
}

fn options(arguments: &Arguments) -> Map<String, Value> {
    let mut options = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            options.insert(key.to_owned(), value);
        }
    };
    set("temperature", arguments.temperature.map(Value::from));
    set("top_p", arguments.top_p.map(Value::from));
    set("seed", arguments.seed.map(Value::from));
    set("max_tokens", arguments.max_tokens.map(Value::from));
    options
}
