//! The web UI: its packages, its build, and the types it gets from the control routes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use anyhow::{Context, Result, bail};

use crate::{npm, packages, shell, workspace};

/// Types of the control routes, made from their document.
const TYPES: &str = "src/lib/api/schema.gen.ts";

/// What stands above the types.
const TYPES_HEAD: &str =
    "// Made by `cargo xtask generate` from the control routes; edit those instead.\n\n";

fn folder() -> PathBuf {
    workspace::root().join("ui")
}

/// Builds `ui/dist` unless nothing has changed since it was built.
pub(crate) fn build() -> Result<()> {
    let folder = folder();
    let index = folder.join("dist/index.html");
    if let Some(built) = modified(&index)
        && newest(&folder)? < built
    {
        return Ok(());
    }
    println!("building the UI");
    run_script("build")
}

/// Type-checks and lints the UI, and weighs what a first visit loads.
pub(crate) fn check() -> Result<()> {
    run_script("check")?;
    build()?;
    run_script("budget")
}

/// A script of `ui/package.json`.
fn run_script(name: &str) -> Result<()> {
    shell::run(&mut script(name)?)
}

/// The command that runs a script of `ui/package.json`, with its packages in place.
pub(crate) fn script(name: &str) -> Result<Command> {
    let folder = folder();
    npm::link(&folder)?;
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", name])
        .env("PATH", npm::path_with(&npm::node()?)?)
        // What is printed may be read by a program.
        .env("NO_COLOR", "1")
        .current_dir(folder);
    Ok(npm)
}

/// Writes the types anew.
pub(crate) fn generate() -> Result<()> {
    let path = folder().join(TYPES);
    fs::write(&path, types()?).with_context(|| format!("cannot write {}", path.display()))
}

/// Fails when the types are not those of the control routes.
pub(crate) fn check_generated() -> Result<()> {
    let path = folder().join(TYPES);
    let there = fs::read_to_string(&path).unwrap_or_default();
    if there != types()? {
        bail!(
            "{} is not what the control routes say: run `cargo xtask generate`",
            path.display()
        );
    }
    Ok(())
}

fn types() -> Result<String> {
    let folder = folder();
    npm::link(&folder)?;
    let document = shell::output(&mut Command::new(packages::example("openapi")?))?;
    let scratch = workspace::cache()?.join("openapi");
    workspace::create_folder(&scratch)?;
    let path = scratch.join(format!("{}.json", std::process::id()));
    fs::write(&path, document).with_context(|| format!("cannot write {}", path.display()))?;
    let types = shell::output(
        Command::new(npm::node()?.join("node"))
            .arg(folder.join("node_modules/openapi-typescript/bin/cli.js"))
            .arg(&path)
            .args([
                "--alphabetize",
                "--root-types",
                "--root-types-no-schema-prefix",
                // Objects of any shape hold something that must be looked at, not nothing.
                "--empty-objects-unknown",
            ])
            .current_dir(&folder),
    );
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    Ok(format!("{TYPES_HEAD}{}", types?))
}

/// The last change of any file that the build reads.
fn newest(folder: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        let name = entry.file_name();
        if name == "dist" || name == "node_modules" {
            continue;
        }
        let path = entry.path();
        let changed = if entry.file_type()?.is_dir() {
            self::newest(&path)?
        } else {
            modified(&path).unwrap_or(SystemTime::now())
        };
        newest = newest.max(changed);
    }
    Ok(newest)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
