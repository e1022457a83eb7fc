//! All servers of mcp.json, and what they offer together.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use macmlx_settings::{
    McpServer, McpServerEdit, McpServerKind, McpServers, ToolPolicies, ToolPolicy,
};
use parking_lot::Mutex;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value};
use tokio::{
    sync::broadcast,
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    LoginShell, PoolError, ServerStatus, Tool,
    guard::Guard,
    server::{CONNECT_TIMEOUT, Server},
    session::{CallError, CallTimes},
    tool_names,
    transport::{Transport, stdio::Stdio},
};

/// How often the file is looked at: other programs write it, too.
const RELOAD_EVERY: Duration = Duration::from_secs(3);
/// Changes that a slow listener may fall behind.
const CHANGES: usize = 256;
/// Longer than any server may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(6);

/// What a pool needs.
#[derive(Debug, Clone)]
pub struct PoolSetup {
    pub servers: Arc<McpServers>,
    pub policies: Arc<ToolPolicies>,
    pub shell: Arc<LoginShell>,
}

/// The running servers. Dropping it ends them in the background; [`Pool::stop`] waits for that.
pub struct Pool {
    inner: Arc<Inner>,
    _watch: DropGuard,
}

/// Something that a person sees differently now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolChange {
    /// [`Pool::server`] has another answer.
    Server {
        name: String,
    },
    Removed {
        name: String,
    },
    /// [`Pool::error`] has another answer.
    File,
}

type Reach = dyn Fn(&McpServer) -> Option<Arc<dyn Transport>> + Send + Sync;

struct Inner {
    setup: PoolSetup,
    reach: Box<Reach>,
    guard: Arc<Guard>,
    /// The servers, in the order of the file.
    servers: Mutex<Vec<Arc<Server>>>,
    error: Mutex<Option<String>>,
    changes: broadcast::Sender<PoolChange>,
    /// Held while servers are started and stopped. Once it is true, none is started any more.
    reloading: tokio::sync::Mutex<bool>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Pool")
            .field("setup", &self.inner.setup)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Starts the servers, in the background. Must be called within a tokio runtime.
    pub fn start(setup: PoolSetup) -> Self {
        let guard = Arc::new(Guard::default());
        let (settings, shell, guarded) =
            (setup.servers.clone(), setup.shell.clone(), guard.clone());
        let reach = move |server: &McpServer| match &server.kind {
            McpServerKind::Stdio(command) => Some(Arc::new(Stdio {
                command: command.clone(),
                settings: settings.clone(),
                shell: shell.clone(),
                guard: guarded.clone(),
            }) as Arc<dyn Transport>),
            McpServerKind::Unusable { .. } => None,
        };
        Self::reaching(setup, guard, Box::new(reach))
    }

    pub(crate) fn reaching(setup: PoolSetup, guard: Arc<Guard>, reach: Box<Reach>) -> Self {
        let inner = Arc::new(Inner {
            setup,
            reach,
            guard,
            servers: Mutex::default(),
            error: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES),
            reloading: tokio::sync::Mutex::new(false),
        });
        let ended = CancellationToken::new();
        let watched = Arc::downgrade(&inner);
        let token = ended.clone();
        tokio::spawn(async move {
            let watch = async {
                while let Some(inner) = watched.upgrade() {
                    inner.reload().await;
                    drop(inner);
                    sleep(RELOAD_EVERY).await;
                }
            };
            token.run_until_cancelled(watch).await;
        });
        Self {
            inner,
            _watch: ended.drop_guard(),
        }
    }

    /// Reads mcp.json now rather than at the next look, and starts and stops what changed.
    pub async fn reload(&self) {
        self.inner.reload().await;
    }

    /// What is wrong with mcp.json as a whole; the servers of the last good one go on.
    pub fn error(&self) -> Option<String> {
        self.inner.error.lock().clone()
    }

    /// Where mcp.json is.
    pub fn settings(&self) -> &McpServers {
        &self.inner.setup.servers
    }

    pub fn policies(&self) -> &Arc<ToolPolicies> {
        &self.inner.setup.policies
    }

    /// Changes from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<PoolChange> {
        self.inner.changes.subscribe()
    }

    /// All servers, in the order of the file.
    pub fn servers(&self) -> Vec<ServerStatus> {
        let mut servers: Vec<_> = self
            .inner
            .servers()
            .iter()
            .map(|server| server.status())
            .collect();
        let mut tools: Vec<Tool> = servers
            .iter_mut()
            .flat_map(|server| std::mem::take(&mut server.tools))
            .collect();
        tool_names::assign(&mut tools);
        for tool in tools {
            if let Some(server) = servers.iter_mut().find(|server| server.name == tool.server) {
                server.tools.push(tool);
            }
        }
        servers
    }

    pub fn server(&self, name: &str) -> Option<ServerStatus> {
        // Full names depend on all tools.
        let servers = self.servers();
        servers.into_iter().find(|server| server.name == name)
    }

    /// Writes a server into mcp.json and starts it, unless it is disabled.
    pub async fn put(&self, name: &str, edit: McpServerEdit) -> Result<ServerStatus, PoolError> {
        let servers = self.inner.setup.servers.clone();
        let named = name.to_owned();
        blocking(move || servers.put(&named, edit)).await??;
        self.reload().await;
        self.find_status(name)
    }

    /// Takes a server out of mcp.json and ends it.
    pub async fn remove(&self, name: &str) -> Result<(), PoolError> {
        let servers = self.inner.setup.servers.clone();
        let named = name.to_owned();
        let was_there = blocking(move || servers.remove(&named)).await??;
        self.reload().await;
        if was_there {
            Ok(())
        } else {
            Err(PoolError::NoServer { name: name.into() })
        }
    }

    /// Ends a server and starts it anew, also one that was given up.
    pub async fn restart(&self, name: &str) -> Result<ServerStatus, PoolError> {
        self.inner.restart(name).await?;
        self.find_status(name)
    }

    /// Stores what a tool may do.
    pub async fn set_policy(
        &self,
        server: &str,
        tool: &str,
        policy: ToolPolicy,
    ) -> Result<ServerStatus, PoolError> {
        let status = self.find_status(server)?;
        let Some(tool) = status.tools.iter().find(|known| known.name == tool) else {
            return Err(PoolError::NoTool {
                server: server.into(),
                tool: tool.into(),
            });
        };
        let tool = tool.full_name.clone();
        let policies = self.inner.setup.policies.clone();
        blocking(move || policies.set(&tool, policy)).await??;
        self.inner.tell(PoolChange::Server {
            name: server.into(),
        });
        Ok(status)
    }

    /// Policies of tools by their full names; all others are asked about.
    pub async fn all_policies(&self) -> Arc<BTreeMap<String, ToolPolicy>> {
        let policies = self.inner.setup.policies.clone();
        blocking(move || policies.all()).await.unwrap_or_default()
    }

    /// Ends all servers and waits until nothing of them is left.
    pub async fn stop(&self) {
        let mut is_ending = self.inner.reloading.lock().await;
        *is_ending = true;
        let servers = self.inner.servers();
        join_all(servers.iter().map(|server| server.stop())).await;
        let _ = timeout(STOP_TIMEOUT, self.inner.guard.wait_until_empty()).await;
    }

    /// Tools that the model may be told of. Servers that start for the first time are waited for.
    pub(crate) async fn list_offered(&self) -> Vec<Tool> {
        let servers = self.inner.servers();
        let settled = join_all(servers.iter().map(|server| server.wait_until_settled()));
        let _ = timeout(CONNECT_TIMEOUT, settled).await;
        let mut tools: Vec<_> = servers.iter().flat_map(|server| server.tools()).collect();
        tool_names::assign(&mut tools);
        let policies = self.all_policies().await;
        tools.retain(|tool| policies.get(&tool.full_name) != Some(&ToolPolicy::Never));
        tools
    }

    pub(crate) async fn call(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
        times: CallTimes,
    ) -> Result<CallToolResult, CallError> {
        let servers = self.inner.servers();
        let Some(server) = servers
            .iter()
            .find(|server| server.definition.name == tool.server)
        else {
            return Err(CallError::NotRunning {
                server: tool.server.clone(),
                reason: "it is not in mcp.json any more".into(),
            });
        };
        server.call(&tool.name, arguments, times).await
    }

    fn find_status(&self, name: &str) -> Result<ServerStatus, PoolError> {
        self.server(name)
            .ok_or_else(|| PoolError::NoServer { name: name.into() })
    }
}

impl Inner {
    fn servers(&self) -> Vec<Arc<Server>> {
        self.servers.lock().clone()
    }

    fn tell(&self, change: PoolChange) {
        // The send fails when no receiver is left, which is fine.
        let _ = self.changes.send(change);
    }

    fn begin(&self, definition: McpServer) -> Arc<Server> {
        let transport = (self.reach)(&definition);
        let (listeners, name) = (self.changes.clone(), definition.name.clone());
        let changed = move || {
            let _ = listeners.send(PoolChange::Server { name: name.clone() });
        };
        Arc::new(Server::start(definition, transport, Box::new(changed)))
    }

    async fn reload(&self) {
        let is_ending = self.reloading.lock().await;
        if *is_ending {
            return;
        }
        let file = self.setup.servers.clone();
        let Ok(loaded) = blocking(move || file.load()).await else {
            return;
        };
        let error = loaded.as_ref().err().map(ToString::to_string);
        let has_changed = {
            let mut known = self.error.lock();
            let has_changed = *known != error;
            *known = error;
            has_changed
        };
        if has_changed {
            self.tell(PoolChange::File);
        }
        let Ok(definitions) = loaded else {
            return;
        };
        let mut old = self.servers();
        if old.iter().map(|server| &server.definition).eq(&definitions) {
            return;
        }
        let mut begun = Vec::new();
        let servers = definitions.into_iter().map(|definition| {
            let same = old
                .iter()
                .position(|server| server.definition == definition);
            if let Some(index) = same {
                old.swap_remove(index)
            } else {
                begun.push(definition.name.clone());
                self.begin(definition)
            }
        });
        let servers: Vec<_> = servers.collect();
        *self.servers.lock() = servers;
        for server in &old {
            let name = server.definition.name.clone();
            if !begun.contains(&name) {
                self.tell(PoolChange::Removed { name });
            }
        }
        for name in begun {
            self.tell(PoolChange::Server { name });
        }
        join_all(old.iter().map(|server| server.stop())).await;
    }

    async fn restart(&self, name: &str) -> Result<(), PoolError> {
        let is_ending = self.reloading.lock().await;
        if *is_ending {
            return Err(PoolError::Ending);
        }
        let old = self.servers();
        let Some(index) = old.iter().position(|server| server.definition.name == name) else {
            return Err(PoolError::NoServer { name: name.into() });
        };
        old[index].stop().await;
        let server = self.begin(old[index].definition.clone());
        if let Some(place) = self.servers.lock().get_mut(index) {
            *place = server;
        }
        self.tell(PoolChange::Server { name: name.into() });
        Ok(())
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PoolError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| PoolError::Ending)
}
