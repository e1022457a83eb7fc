//! The end of the app: everything that runs is ended before the process is.

use std::{
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use anyhow::Context as _;
use macmlx_host::Host;
use tauri::{AppHandle, Manager as _, RunEvent, async_runtime};
use tauri_plugin_dialog::{DialogExt as _, MessageDialogButtons, MessageDialogKind};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    router::Router,
    strings::fill,
    tray::{Status, Tray},
    window,
};

/// How long the engine may take to end what cannot be broken off, such as loading weights.
const ENGINE_GRACE: Duration = Duration::from_mins(1);

/// How far the end has come.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU8);

const RUNNING: u8 = 0;
const ENDING: u8 = 1;
const ENDED: u8 = 2;

/// Quits, after a question when answers are being generated.
pub(crate) fn ask(app: &AppHandle) {
    let app = app.clone();
    async_runtime::spawn(async move {
        let running = running(&app).await;
        if running == 0 {
            begin(&app);
            return;
        }
        let strings = app.state::<Tray>().strings();
        let count = running.to_string();
        let handle = app.clone();
        app.dialog()
            .message(fill(strings.quit_question, &[("count", &count)]))
            .title(strings.quit)
            .kind(MessageDialogKind::Warning)
            .buttons(MessageDialogButtons::OkCancelCustom(
                strings.quit_anyway.to_owned(),
                strings.cancel.to_owned(),
            ))
            .show(move |is_certain| {
                if is_certain {
                    begin(&handle);
                }
            });
    });
}

/// How many answers are being generated.
async fn running(app: &AppHandle) -> u64 {
    let Some(router) = app.try_state::<Router>() else {
        return 0;
    };
    match router.get::<Status>("/x/status").await {
        Ok(status) => status.requests_running,
        // A server that cannot say so does not hold up its end.
        Err(error) => {
            tracing::warn!(%error, "cannot tell whether answers run");
            0
        }
    }
}

/// Begins the end, once: doors close, answers get a few seconds, servers of tools and the engine
/// end, then the process does.
pub(crate) fn begin(app: &AppHandle) {
    let progress = &app.state::<Progress>().0;
    if progress
        .compare_exchange(RUNNING, ENDING, Ordering::SeqCst, Ordering::SeqCst)
        .is_err()
    {
        return;
    }
    window::hide(app);
    let app = app.clone();
    async_runtime::spawn(async move {
        shut_down(&app).await;
        app.state::<Progress>().0.store(ENDED, Ordering::SeqCst);
        app.exit(0);
    });
}

async fn shut_down(app: &AppHandle) {
    if let Some(router) = app.try_state::<Router>() {
        router.app().shut_down().await;
    }
    let app = app.clone();
    let ended = async_runtime::spawn_blocking(move || {
        if !macmlx_host::wait_for_end(ENGINE_GRACE) {
            tracing::warn!("the engine did not end in time");
        }
        if let Some(host) = app.try_state::<Host>() {
            host.logs.close();
        }
    });
    if let Err(error) = ended.await {
        tracing::error!(%error, "the end did not go well");
    }
}

/// Ends the app when a signal asks for it.
pub(crate) fn on_signals(app: &AppHandle) -> anyhow::Result<()> {
    let app = app.clone();
    async_runtime::block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        async_runtime::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            begin(&app);
        });
        Ok::<_, std::io::Error>(())
    })
    .context("cannot listen for signals")
}

/// Ends the app when one of its routes was asked for it.
pub(crate) async fn with_router(app: AppHandle, router: Router) {
    router.app().stopping().await;
    begin(&app);
}

/// What the run of the app tells that concerns its end.
pub(crate) fn handle(app: &AppHandle, event: &RunEvent) {
    let progress = app.state::<Progress>();
    match event {
        // The menu bar stays without a window.
        RunEvent::ExitRequested {
            code: None, api, ..
        } => api.prevent_exit(),
        // The system ends the app without asking, as at the end of a session on macOS.
        RunEvent::Exit if progress.0.swap(ENDED, Ordering::SeqCst) != ENDED => {
            async_runtime::block_on(shut_down(app));
        }
        _ => {}
    }
}
