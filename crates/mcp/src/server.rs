//! One server, kept running by a task of its own.
//!
//! The task goes from starting to running to failed and back: a server that ends is started again
//! after a while that grows, and one that fails [`ATTEMPTS`] times in a row stays failed until a
//! person changes or restarts it.

use std::{
    future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Fuse, FusedFuture},
};
use macmlx_settings::{McpServer, McpServerKind};
use rmcp::{
    RoleClient,
    model::CallToolResult,
    service::{Peer, QuitReason, ServiceError},
};
use serde_json::{Map, Value};
use tokio::{
    sync::{Notify, watch},
    task::{JoinError, JoinHandle},
    time::{Instant, interval_at, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    ServerInfo, ServerState, ServerStatus, Tool,
    client::Client,
    log_tail::LogTail,
    process::Process,
    session::{self, CallError, CallTimes},
    transport::{Connection, Transport},
};

/// From the start of a server to the list of its tools.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Failures in a row after which a server is left alone.
const ATTEMPTS: u32 = 5;
/// A server that ran this long did not fail at once.
const STEADY: Duration = Duration::from_secs(10);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// An idle server is asked this often whether it is there.
const PING_EVERY: Duration = Duration::from_mins(1);
const PING_TIMEOUT: Duration = Duration::from_secs(30);

/// A server of mcp.json and the task that keeps it.
pub(crate) struct Server {
    pub(crate) definition: McpServer,
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// What the task and everyone else see.
struct Shared {
    name: String,
    live: watch::Sender<Live>,
    log: Arc<LogTail>,
    /// Calls that the server works on.
    calls: AtomicUsize,
    changed: Box<dyn Fn() + Send + Sync>,
}

struct Live {
    state: ServerState,
    error: Option<String>,
    info: Option<ServerInfo>,
    tools: Vec<Tool>,
    pid: Option<u32>,
    started: Option<SystemTime>,
    /// Failures in a row.
    failures: u32,
    peer: Option<Peer<RoleClient>>,
}

impl Server {
    /// Starts the task, unless the server is disabled or cannot be used. `changed` is called after
    /// each change that a person sees.
    pub(crate) fn start(
        definition: McpServer,
        transport: Option<Arc<dyn Transport>>,
        changed: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        let (state, error) = match &definition.kind {
            _ if !definition.is_enabled => (ServerState::Disabled, None),
            McpServerKind::Unusable { reason } => (ServerState::Failed, Some(reason.clone())),
            McpServerKind::Stdio(_) => (ServerState::Starting, None),
        };
        let shared = Arc::new(Shared {
            name: definition.name.clone(),
            live: watch::Sender::new(Live {
                state,
                error,
                info: None,
                tools: Vec::new(),
                pid: None,
                started: None,
                failures: 0,
                peer: None,
            }),
            log: Arc::default(),
            calls: AtomicUsize::new(0),
            changed,
        });
        let stop = CancellationToken::new();
        let task = transport
            .filter(|_| state == ServerState::Starting)
            .map(|transport| tokio::spawn(supervise(shared.clone(), transport, stop.clone())));
        Self {
            definition,
            shared,
            stop,
            task: Mutex::new(task),
        }
    }

    /// Ends the server and waits until it has.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }

    /// Tools without their full names.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        self.shared.live.borrow().tools.clone()
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let live = self.shared.live.borrow();
        let (command, args, env) = match &self.definition.kind {
            McpServerKind::Stdio(stdio) => (
                stdio.command.clone(),
                stdio.args.clone(),
                stdio.env.keys().cloned().collect(),
            ),
            McpServerKind::Unusable { .. } => Default::default(),
        };
        ServerStatus {
            name: self.definition.name.clone(),
            command,
            args,
            env,
            is_enabled: self.definition.is_enabled,
            state: live.state,
            error: live.error.clone(),
            info: live.info.clone(),
            tools: live.tools.clone(),
            log_tail: self.shared.log.lines(),
            pid: live.pid,
            started: live.started,
        }
    }

    /// Returns once it does not start for the first time any more.
    pub(crate) async fn settled(&self) {
        let mut live = self.shared.live.subscribe();
        let _ = live
            .wait_for(|live| live.state != ServerState::Starting || live.failures > 0)
            .await;
    }

    /// Calls a tool. A server that is being started is waited for.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        times: CallTimes,
    ) -> Result<CallToolResult, CallError> {
        let peer = self.running(tool).await?;
        let _busy = Busy::new(&self.shared.calls);
        session::call(&peer, tool.to_owned(), arguments, times).await
    }

    async fn running(&self, tool: &str) -> Result<Peer<RoleClient>, CallError> {
        let mut live = self.shared.live.subscribe();
        let comes_up =
            live.wait_for(|live| live.state != ServerState::Starting && !live.is_to_be_retried());
        let _ = timeout(CONNECT_TIMEOUT, comes_up).await;
        let live = self.shared.live.borrow();
        let Some(peer) = live.peer.clone() else {
            return Err(CallError::NotRunning {
                server: self.definition.name.clone(),
                reason: live.error.clone().unwrap_or_else(|| {
                    match live.state {
                        ServerState::Disabled => "it is disabled",
                        ServerState::Starting => "it is still starting",
                        ServerState::Running | ServerState::Stopped | ServerState::Failed => {
                            "it was stopped"
                        }
                    }
                    .into()
                }),
            });
        };
        if live.tools.iter().any(|known| known.name == tool) {
            Ok(peer)
        } else {
            Err(CallError::NoTool {
                server: self.definition.name.clone(),
                tool: tool.into(),
            })
        }
    }
}

/// Counts a call for as long as it lives.
struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    fn new(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        Self(calls)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Live {
    fn is_to_be_retried(&self) -> bool {
        self.state == ServerState::Failed && (1..ATTEMPTS).contains(&self.failures)
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Live)) {
        self.live.send_modify(change);
        (self.changed)();
    }

    /// A reason, and what the server itself said last.
    fn with_last_words(&self, reason: impl std::fmt::Display) -> String {
        match self.log.last() {
            Some(words) => format!("{reason}: {words}"),
            None => reason.to_string(),
        }
    }
}

/// Why a server does not run any more.
enum End {
    Stopped,
    Failed { reason: String, ran: Duration },
}

async fn supervise(shared: Arc<Shared>, transport: Arc<dyn Transport>, stop: CancellationToken) {
    let mut failures = 0;
    // Who is stopped now is stopped below.
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
        (Some(_), Some(process)) => process.ended().await,
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
