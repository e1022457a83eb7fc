//! `cargo xtask check`: everything that a change must pass besides its tests.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{layers, packages, places, setup, shell, sizes, tool, ui, workspace};

type Check = fn() -> Result<()>;

/// Runs all checks, also after one has failed, and names those that did.
pub(crate) fn run() -> Result<()> {
    setup::run()?;
    let checks: &[(&str, Check)] = &[
        ("format", format),
        ("layers", layers::run),
        ("sizes", sizes::run),
        ("places", places::run),
        ("typos", typos),
        ("dependencies", dependencies),
        ("advisories", advisories),
        ("clippy", clippy),
        ("generated files of the UI", ui::check_generated),
        ("UI", ui::check),
        ("clippy for macOS", clippy_for_macos),
    ];
    let mut failed = Vec::new();
    for (name, check) in checks {
        println!("check: {name}");
        if let Err(error) = check() {
            println!("check: {name} failed\n{error:#}");
            failed.push(*name);
        }
    }
    println!(
        "check: {} of {} passed",
        checks.len() - failed.len(),
        checks.len()
    );
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn format() -> Result<()> {
    shell::run(&mut cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    setup::ensure_to_build_desktop()?;
    // Behind features: the generator of bindings, played answers, and the suites of schemas.
    shell::run(packages::cargo("clippy")?.args([
        "--all-targets",
        "--features",
        "xtask/bindings,macmlx-cli/playback,macmlx-host/schema-suites",
        "--",
        "-D",
        "warnings",
    ]))
}

fn typos() -> Result<()> {
    shell::run(Command::new(tool::TYPOS.ensure()?).current_dir(workspace::root()))
}

fn dependencies() -> Result<()> {
    shell::run(deny()?.args(["check", "licenses", "bans", "sources"]))
}

/// The database of advisories lives in a git repository only; without access to it this says so
/// rather than failing.
fn advisories() -> Result<()> {
    if !shell::succeeds(deny()?.args(["fetch", "db"])) {
        println!("advisories: NOT CHECKED, the advisory database cannot be fetched here");
        return Ok(());
    }
    shell::run(deny()?.args(["check", "advisories"]))
}

fn deny() -> Result<Command> {
    let mut command = Command::new(tool::CARGO_DENY.ensure()?);
    command.current_dir(workspace::root());
    Ok(command)
}

/// Type-checks the code for macOS where a tool for that lies beside the clone.
fn clippy_for_macos() -> Result<()> {
    if cfg!(target_os = "macos") {
        println!("clippy for macOS: this is macOS");
        return Ok(());
    }
    let script = workspace::root().join("../shared/tools/check-macos.sh");
    if !script.exists() {
        println!("clippy for macOS: skipped, no cross-checking tool beside the clone");
        return Ok(());
    }
    setup::ensure_to_check_macos()?;
    ui::build()?;
    shell::run(
        Command::new("bash")
            .current_dir(workspace::root())
            // Cargo points both at its own toolchain; the tool has another.
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("RUSTUP_TOOLCHAIN")
            .arg(script)
            .args(["clippy", "--workspace", "--", "-D", "warnings"]),
    )
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = shell::cargo();
    command.current_dir(workspace::root()).args(arguments);
    command
}
