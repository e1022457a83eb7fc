//! `cargo xtask run`: from a clean clone to an app that answers, in one command.

use std::{
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{setup, shell, starter, ui, workspace};

/// What the command line asks for.
#[derive(Debug, Default, PartialEq)]
struct Request {
    /// No window, even where there is a display.
    is_headless: bool,
    /// A model to pull and serve instead of the starter model.
    model: Option<OsString>,
    /// Everything else, for `macmlx serve`.
    serve: Vec<OsString>,
}

/// Sets up, builds, makes sure that there is a model, and becomes the app or `macmlx serve`.
pub(crate) fn run(arguments: Vec<OsString>) -> Result<()> {
    let request = parse(arguments)?;
    let opens_window = !request.is_headless && has_display();
    if opens_window && !request.serve.is_empty() {
        bail!(
            "options of `macmlx serve` are for --headless; in the app they are settings: {}",
            request.serve.join(OsStr::new(" ")).display()
        );
    }
    setup::run()?;
    ui::build()?;
    if opens_window {
        setup::ensure_to_build_desktop()?;
    }
    let program = build(&["ui"], opens_window)?;
    let model = choose_model(&program, request.model)?;
    let mut command = if opens_window {
        Command::new(workspace::program("release", workspace::DESKTOP)?)
    } else {
        let mut serve = Command::new(program);
        serve.arg("serve");
        if let Some(model) = model {
            serve.arg("--model").arg(model);
        }
        serve.args(request.serve);
        serve
    };
    // Taking over this process lets Ctrl-C and exit codes reach their place directly.
    let error = command.exec();
    Err(error).with_context(|| format!("cannot start {}", command.get_program().display()))
}

/// Whether a window would be seen.
fn has_display() -> bool {
    cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .into_iter()
            .any(|name| shell::variable(name).is_some())
}

/// The program as users run it, and the app beside it where that is wanted.
pub(crate) fn build(features: &[&str], with_desktop: bool) -> Result<PathBuf> {
    let features: Vec<String> = features
        .iter()
        .map(|feature| format!("macmlx-cli/{feature}"))
        .collect();
    let mut cargo = shell::cargo();
    cargo
        .current_dir(workspace::root())
        .args(["build", "--release", "--package", "macmlx-cli"])
        .args(["--features", &features.join(",")]);
    if with_desktop {
        cargo.args(["--package", workspace::DESKTOP]);
    }
    shell::run(&mut cargo)?;
    workspace::program("release", "macmlx")
}

fn parse(arguments: Vec<OsString>) -> Result<Request> {
    let mut request = Request::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--headless" {
            request.is_headless = true;
            continue;
        }
        if argument == "--model" {
            let model = arguments
                .next()
                .context("--model needs a value, such as owner/repo")?;
            request.model = Some(model);
        } else if let Some(model) = argument
            .to_str()
            .and_then(|argument| argument.strip_prefix("--model="))
        {
            request.model = Some(model.into());
        } else {
            request.serve.push(argument);
        }
    }
    Ok(request)
}

/// The model to preload, after fetching what is missing. None leaves the choice to the server.
fn choose_model(program: &Path, wanted: Option<OsString>) -> Result<Option<OsString>> {
    if let Some(model) = wanted {
        let is_here = shell::succeeds(Command::new(program).arg("show").arg(&model));
        if !is_here {
            shell::run(Command::new(program).arg("pull").arg(&model))?;
        }
        return Ok(Some(model));
    }
    let models = local_models(program)?;
    if models.is_empty() {
        let file = starter::gguf()?;
        println!("importing the starter model {}", starter::NAME);
        shell::run(
            Command::new(program)
                .args([OsStr::new("import"), file.as_os_str()])
                .args(["--name", starter::NAME]),
        )?;
    } else if !models.iter().any(|model| model == starter::NAME) {
        return Ok(None);
    }
    Ok(Some(starter::NAME.into()))
}

fn local_models(program: &Path) -> Result<Vec<String>> {
    let printed = shell::output(Command::new(program).args(["list", "--json"]))?;
    let listed: serde_json::Value =
        serde_json::from_str(&printed).context("cannot read what `macmlx list --json` printed")?;
    let Some(models) = listed["models"].as_array() else {
        bail!("`macmlx list --json` printed no models");
    };
    Ok(models
        .iter()
        .filter_map(|model| model["id"].as_str().map(str::to_owned))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Request> {
        parse(arguments.iter().map(OsString::from).collect())
    }

    #[test]
    fn our_options_may_stand_anywhere() -> Result<()> {
        let expected = Request {
            is_headless: true,
            model: Some("org/x".into()),
            serve: vec!["--port".into(), "8123".into()],
        };
        assert_eq!(
            parsed(&["--port", "8123", "--headless", "--model", "org/x"])?,
            expected
        );
        let expected = Request {
            is_headless: false,
            ..expected
        };
        assert_eq!(parsed(&["--model=org/x", "--port", "8123"])?, expected);
        assert_eq!(parsed(&[])?, Request::default());
        Ok(())
    }

    #[test]
    fn a_model_option_without_a_value_is_an_error() {
        assert!(parsed(&["--model"]).is_err());
    }
}
