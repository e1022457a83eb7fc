//! What a person is shown of a server.

use std::time::SystemTime;

use crate::Tool;

/// How a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerState {
    Starting,
    Running,
    /// The pool was stopped.
    Stopped,
    Failed,
    /// `"disabled": true` in mcp.json.
    Disabled,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
}

/// A server at this moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    /// Its name in mcp.json.
    pub name: String,
    /// The command as mcp.json has it; empty if it has none.
    pub command: String,
    pub args: Vec<String>,
    /// Names of the variables in `env`; their values are often secrets.
    pub env: Vec<String>,
    pub is_enabled: bool,
    pub state: ServerState,
    /// Why it failed, and whether it is tried again.
    pub error: Option<String>,
    pub info: Option<ServerInfo>,
    /// What it offers, in its own order; nothing unless it runs.
    pub tools: Vec<Tool>,
    /// The last lines it wrote to standard error, oldest first.
    pub log_tail: Vec<String>,
    pub pid: Option<u32>,
    /// When it began to run.
    pub started: Option<SystemTime>,
}
