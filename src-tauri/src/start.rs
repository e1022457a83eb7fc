//! The start of what the shell is the shell of, and what is said when it fails.

use anyhow::Context as _;
use macmlx_host::{AlreadyRunning, App, AppOptions, DoorOptions, Host, Owner, Record};
use macmlx_settings::{Environment, Home};
use tauri::{AppHandle, Manager as _, async_runtime};
use tauri_plugin_dialog::{
    DialogExt as _, MessageDialogBuilder, MessageDialogButtons, MessageDialogKind,
    MessageDialogResult,
};

use crate::{
    end,
    router::Router,
    strings::{self, Strings, fill},
    tray, window,
};

/// Starts the app behind the window, then shows the window unless it is to stay hidden.
pub(crate) fn begin(app: &AppHandle, is_hidden: bool) {
    async_runtime::spawn(open_and_run(app.clone(), is_hidden));
}

async fn open_and_run(app: AppHandle, is_hidden: bool) {
    let opened = async_runtime::spawn_blocking(|| {
        let host = Host::open(Environment::from_process())?;
        macmlx_host::logs::start(&host)?;
        Ok(host)
    });
    match opened.await.context("the start failed").flatten() {
        Ok(host) => {
            for warning in &host.warnings {
                tracing::warn!("{warning}");
            }
            app.manage(host.clone());
            run(app, host, is_hidden);
        }
        Err(error) => {
            let again = app.clone();
            explain(&app, &error, move || begin(&again, false));
        }
    }
}

fn run(app: AppHandle, host: Host, is_hidden: bool) {
    async_runtime::spawn(async move {
        match start(host.clone()).await {
            Ok(started) => {
                let router = Router::new(started);
                app.manage(router.clone());
                async_runtime::spawn(end::with_router(app.clone(), router.clone()));
                async_runtime::spawn(tray::watch(app.clone(), router));
                if !is_hidden {
                    window::show(&app, None);
                }
            }
            Err(error) => {
                tracing::error!("cannot start: {error:#}");
                let again = app.clone();
                explain(&app, &error, move || run(again, host, false));
            }
        }
    });
}

/// Starts the app behind the window; its server too where the settings say so.
async fn start(host: Host) -> anyhow::Result<App> {
    let opens_door = host.settings.auto_start_server;
    let app = App::start(host, AppOptions::default(), Owner::Gui).await?;
    if opens_door && let Err(error) = app.open_door(DoorOptions::default()).await {
        // The door's state tells it as well, and the window works without.
        tracing::error!("the server cannot start: {error:#}");
    }
    Ok(app)
}

/// Shows the window of a running app. While it starts the window comes by itself.
pub(crate) fn show_window(app: &AppHandle) {
    if app.try_state::<Router>().is_some() {
        window::show(app, None);
    }
}

/// Says why there is no app, and asks what to do.
fn explain(app: &AppHandle, error: &anyhow::Error, again: impl FnOnce() + Send + 'static) {
    let strings = strings::of(None);
    let app = app.clone();
    if let Some(AlreadyRunning::Known(record)) = error.downcast_ref() {
        explain_other(app, record, strings, again);
        return;
    }
    message(&app, format!("{error:#}"), strings)
        .buttons(MessageDialogButtons::OkCancelCustom(
            strings.try_again.to_owned(),
            strings.quit.to_owned(),
        ))
        .show(move |is_retry| {
            if is_retry {
                again();
            } else {
                end::begin(&app);
            }
        });
}

/// Another macMLX serves from this home: its own page can do what this window could.
fn explain_other(
    app: AppHandle,
    record: &Record,
    strings: &'static Strings,
    again: impl FnOnce() + Send + 'static,
) {
    let owner = match record.owner {
        Owner::Gui => strings.owner_app,
        Owner::Cli => strings.owner_command_line,
    };
    let text = fill(
        strings.already_running,
        &[
            ("owner", owner),
            ("pid", &record.pid.to_string()),
            ("port", &record.port.to_string()),
        ],
    );
    let url = format!("http://{}", record.address());
    message(&app, text, strings)
        .buttons(MessageDialogButtons::YesNoCancelCustom(
            strings.open_in_browser.to_owned(),
            strings.try_again.to_owned(),
            strings.quit.to_owned(),
        ))
        .show_with_result(move |answer| match answer {
            MessageDialogResult::Custom(text) if text == strings.try_again => again(),
            MessageDialogResult::Custom(text) if text == strings.open_in_browser => {
                open_in_browser(&url);
                end::begin(&app);
            }
            _ => end::begin(&app),
        });
}

/// The page of the other server, with the token that lets it in.
fn open_in_browser(url: &str) {
    let opened = other_page(url).and_then(|page| {
        tauri_plugin_opener::open_url(page, None::<&str>).context("cannot open the browser")
    });
    if let Err(error) = opened {
        tracing::error!("{error:#}");
    }
}

fn other_page(url: &str) -> anyhow::Result<String> {
    let home = Home::new(&Environment::from_process())?;
    let token = macmlx_settings::control_token(&home).context("cannot read the control token")?;
    Ok(format!("{url}/#token={token}"))
}

fn message(
    app: &AppHandle,
    text: String,
    strings: &'static Strings,
) -> MessageDialogBuilder<tauri::Wry> {
    app.dialog()
        .message(text)
        .title(strings.cannot_start)
        .kind(MessageDialogKind::Error)
}
