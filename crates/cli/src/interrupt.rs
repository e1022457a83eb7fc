//! Ctrl-C and the signal that asks a process to end.

use std::{io, process};

use tokio::signal::unix::{SignalKind, signal};

/// Exit code of a process that Ctrl-C ended, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Listens from now on; the future resolves at the first of either. After that, the next one ends
/// the process at once.
pub(crate) fn listen_for_end() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            process::exit(i32::from(INTERRUPTED));
        });
    })
}

/// Resolves at Ctrl-C; the process goes on.
pub(crate) async fn pressed() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
