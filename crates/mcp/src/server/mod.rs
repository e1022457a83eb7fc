//! One server: what it is told and asked, while a task of its own keeps it running.

mod supervision;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use macmlx_settings::{McpServer, McpServerKind};
use parking_lot::Mutex;
use rmcp::{RoleClient, model::CallToolResult, service::Peer};
use serde_json::{Map, Value};
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

pub(crate) use self::supervision::CONNECT_TIMEOUT;
use self::supervision::{ATTEMPTS, supervise};
use crate::{
    ServerInfo, ServerState, ServerStatus, Tool,
    log_tail::LogTail,
    session::{self, CallError, CallTimes},
    transport::Transport,
};

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
        let task = self.task.lock().take();
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
    pub(crate) async fn wait_until_settled(&self) {
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
