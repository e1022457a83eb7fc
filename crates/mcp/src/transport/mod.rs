//! The ways to reach a server: one file each.

pub(crate) mod stdio;

use std::{future, io, process::ExitStatus, sync::Arc};

use futures::future::BoxFuture;
use macmlx_settings::McpServersError;
use rmcp::{RoleClient, service::RunningService};

use crate::{client::Client, log_tail::LogTail, process::Process};

/// A way to reach one server.
pub(crate) trait Transport: Send + Sync + 'static {
    /// Does what is to be done once and takes time for which no server is to blame.
    fn prepare(&self) -> BoxFuture<'_, ()> {
        Box::pin(future::ready(()))
    }

    /// Reaches the server and shakes hands. Dropping the future undoes what it has begun.
    fn open(
        &self,
        client: Client,
        log: Arc<LogTail>,
    ) -> BoxFuture<'_, Result<Connection, OpenError>>;
}

/// A server that has answered.
pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, Client>,
    /// Where we started it.
    pub(crate) process: Option<Process>,
}

/// Why a server cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Command(#[from] McpServersError),
    #[error(
        "`{command}` is not installed, or not in the PATH of your login shell; give its full path"
    )]
    NotFound { command: String },
    #[error("its folder {cwd} does not exist; set `cwd` in mcp.json")]
    NoFolder { cwd: String },
    #[error("`{command}` cannot be run: {source}")]
    Spawn { command: String, source: io::Error },
    #[error("it ended ({status}) before it answered")]
    Exited { status: ExitStatus },
    #[error("it does not speak MCP: {reason}")]
    Handshake { reason: String },
}
