//! Runs other programs, with errors that name the command.

use std::{
    ffi::OsStr,
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// How many lines of a failed command's log are shown.
const LOG_TAIL_LINES: usize = 40;

/// Runs a command whose output the user watches.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", show(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", show(command));
    }
    Ok(())
}

/// Runs a command whose output goes to `log`; on failure the error carries its last lines.
pub(crate) fn run_logged(command: &mut Command, log: &Path) -> Result<()> {
    let file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", show(command)))?;
    if status.success() {
        return Ok(());
    }
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n");
    bail!("{tail}\n`{}` ended with {status}", show(command));
}

/// Runs a command whose output the user watches, and returns whether it succeeded and that output.
pub(crate) fn run_watched(command: &mut Command) -> Result<(bool, String)> {
    let (reader, writer) = std::io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start `{}`", show(command)))?;
    // The command keeps our ends of the pipe open, and the output would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut text = String::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        text.push_str(&line);
        text.push('\n');
    }
    Ok((child.wait()?.success(), text))
}

/// Runs a command and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{}`", show(command)))?;
    if !output.status.success() {
        bail!("`{}` ended with {}", show(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something that is not text", show(command)))
}

/// Whether a command can be started and succeeds; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Where a program is on the `PATH`.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = variable("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// An environment variable; empty counts as unset.
#[expect(
    clippy::disallowed_methods,
    reason = "xtask runs before any settings exist"
)]
pub(crate) fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The cargo that started us, or the one on the `PATH`.
pub(crate) fn cargo() -> Command {
    Command::new(variable("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn show(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
