//! The task that keeps a server running.
//!
//! It goes from starting to running to failed and back: a server that ends is started again after
//! a while that grows, and one that fails [`ATTEMPTS`] times in a row stays failed until a person
//! changes or restarts it.

use std::{
    future,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Fuse, FusedFuture},
};
use rmcp::{
    RoleClient,
    service::{Peer, QuitReason, ServiceError},
};
use tokio::{
    sync::Notify,
    task::JoinError,
    time::{Instant, interval_at, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::{
    ServerInfo, ServerState, Tool,
    client::Client,
    process::Process,
    session,
    transport::{Connection, Transport},
};

/// How long a server may take from its start to the list of its tools.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Failures in a row after which a server is left alone.
pub(super) const ATTEMPTS: u32 = 5;
/// A server that ran this long did not fail at once.
const STEADY: Duration = Duration::from_secs(10);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// An idle server is asked this often whether it is there.
const PING_EVERY: Duration = Duration::from_mins(1);
const PING_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a server does not run any more.
enum End {
    Stopped,
    Failed { reason: String, ran: Duration },
}

pub(super) async fn supervise(
    shared: Arc<Shared>,
    transport: Arc<dyn Transport>,
    stop: CancellationToken,
) {
    let mut failures = 0;
    // A stop that comes during the preparation is handled by `run` below.
    stop.run_until_cancelled(transport.prepare()).await;
    loop {
        match run(&shared, &*transport, &stop).await {
            End::Stopped => break,
            End::Failed { reason, ran } => {
                if ran >= STEADY {
                    failures = 0;
                }
                failures += 1;
                tracing::warn!(server = shared.name, failures, reason, "MCP server failed");
                let error = if failures < ATTEMPTS {
                    reason
                } else {
                    format!("{reason} (tried {ATTEMPTS} times; restart it once it is repaired)")
                };
                shared.change(|live| {
                    live.state = ServerState::Failed;
                    live.error = Some(error);
                    live.failures = failures;
                });
            }
        }
        if failures >= ATTEMPTS {
            return;
        }
        tokio::select! {
            () = sleep(backoff(failures)) => {}
            () = stop.cancelled() => break,
        }
    }
    shared.change(|live| {
        live.state = ServerState::Stopped;
        live.error = None;
    });
}

fn backoff(failures: u32) -> Duration {
    let doubled = Duration::from_millis(500).saturating_mul(1 << failures.saturating_sub(1).min(8));
    doubled.min(LONGEST_BACKOFF)
}

/// Runs the server once, until it ends or is to end.
async fn run(shared: &Arc<Shared>, transport: &dyn Transport, stop: &CancellationToken) -> End {
    shared.log.clear();
    shared.change(|live| {
        live.state = ServerState::Starting;
        live.started = None;
    });
    let tools_changed = Arc::new(Notify::new());
    let client = Client {
        tools_changed: tools_changed.clone(),
        log: shared.log.clone(),
    };
    let opening = async {
        let connection = transport.open(client, shared.log.clone()).await;
        let connection = connection.map_err(|error| error.to_string())?;
        match list_tools(&shared.name, connection.service.peer()).await {
            Ok(tools) => Ok((connection, tools)),
            Err(error) => {
                close(connection.service.cancel().fuse(), connection.process).await;
                Err(format!("it does not list its tools: {error}"))
            }
        }
    };
    let opened = tokio::select! {
        opened = timeout(CONNECT_TIMEOUT, opening) => opened,
        () = stop.cancelled() => return End::Stopped,
    };
    let (connection, tools) = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(reason)) => {
            return End::Failed {
                reason: shared.with_last_words(reason),
                ran: Duration::ZERO,
            };
        }
        Err(_) => {
            let patience = CONNECT_TIMEOUT.as_secs();
            return End::Failed {
                reason: shared.with_last_words(format!("it did not answer within {patience} s")),
                ran: Duration::ZERO,
            };
        }
    };
    let Connection {
        service,
        mut process,
    } = connection;
    let peer = service.peer().clone();
    let info = peer.peer_info().and_then(|info| {
        info.server_info.as_ref().map(|server| ServerInfo {
            name: server.name.clone(),
            version: server.version.clone(),
        })
    });
    shared.change(|live| {
        live.state = ServerState::Running;
        live.error = None;
        live.info = info;
        live.tools = tools;
        live.pid = process.as_ref().and_then(Process::id);
        live.started = Some(SystemTime::now());
        live.peer = Some(peer.clone());
    });
    let began = Instant::now();
    let cancel = service.cancellation_token();
    let mut closed: Fuse<BoxFuture<'static, _>> = service.waiting().boxed().fuse();
    let reason = tokio::select! {
        _ = &mut closed => Some("it ended".to_owned()),
        reason = watch_over(shared, &peer, &tools_changed) => Some(reason),
        () = stop.cancelled() => None,
    };
    shared.change(|live| {
        live.tools.clear();
        live.pid = None;
        live.peer = None;
        if let Some(reason) = &reason {
            live.state = ServerState::Failed;
            live.error = Some(reason.clone());
            live.failures = live.failures.max(1);
        }
    });
    let status = match (&reason, &mut process) {
        (Some(_), Some(process)) => process.wait_for_end().await,
        _ => None,
    };
    cancel.cancel();
    close(closed, process).await;
    match reason {
        None => End::Stopped,
        Some(reason) => {
            let reason = match status {
                Some(status) => format!("{reason} ({status})"),
                None => reason,
            };
            End::Failed {
                reason: shared.with_last_words(reason),
                ran: began.elapsed(),
            }
        }
    }
}

/// Keeps the list of tools fresh; returns why the server must be given up.
async fn watch_over(shared: &Shared, peer: &Peer<RoleClient>, tools_changed: &Notify) -> String {
    let mut ping = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    loop {
        tokio::select! {
            () = tools_changed.notified() => {
                match timeout(CONNECT_TIMEOUT, list_tools(&shared.name, peer)).await {
                    Ok(Ok(tools)) => shared.change(|live| live.tools = tools),
                    Ok(Err(ServiceError::TransportClosed)) => future::pending().await,
                    Ok(Err(error)) => {
                        tracing::warn!(server = shared.name, %error, "MCP tools cannot be listed");
                    }
                    Err(_) => {
                        tracing::warn!(server = shared.name, "MCP tools are not listed in time");
                    }
                }
            }
            _ = ping.tick() => {
                // One that works on a call may have no ear for anything else.
                if shared.calls.load(Ordering::Relaxed) > 0 {
                    continue;
                }
                if !session::answers_ping(peer, PING_TIMEOUT).await {
                    return format!("it did not answer within {} s", PING_TIMEOUT.as_secs());
                }
            }
        }
    }
}

async fn list_tools(server: &str, peer: &Peer<RoleClient>) -> Result<Vec<Tool>, ServiceError> {
    let offers_tools = peer
        .peer_info()
        .is_some_and(|info| info.capabilities.tools.is_some());
    if !offers_tools {
        return Ok(Vec::new());
    }
    let tools = peer.list_all_tools().await?;
    Ok(tools
        .into_iter()
        .map(|tool| Tool::from_server(server, tool))
        .collect())
}

/// Waits for the connection to close first, so that a process sees the end of its input.
async fn close(
    closed: impl FusedFuture<Output = Result<QuitReason, JoinError>>,
    process: Option<Process>,
) {
    if !closed.is_terminated() {
        let _ = timeout(Duration::from_secs(1), closed).await;
    }
    if let Some(process) = process {
        process.stop().await;
    }
}
