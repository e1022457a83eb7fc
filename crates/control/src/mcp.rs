//! MCP servers: what runs, what it offers, and what its tools may do.

use std::{collections::BTreeMap, sync::Arc, time::UNIX_EPOCH};

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use macmlx_inference::rfc3339;
use macmlx_mcp::{Pool, PoolChange, PoolError, ServerStatus};
use macmlx_settings::{McpServerEdit, McpServersError, ToolPolicy};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    Problem,
    body::Body,
    events::{Event, Events},
    reply::ErrorBody,
};

/// All servers.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct McpServers {
    /// The servers, in the order of mcp.json.
    pub servers: Vec<McpServer>,
    /// Where mcp.json is.
    pub path: String,
    /// Why mcp.json cannot be read; the servers of the last good one go on.
    #[schema(required)]
    pub error: Option<String>,
}

/// A server and its tools.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct McpServer {
    pub name: String,
    /// The command, as mcp.json has it; empty if the server is no program.
    pub command: String,
    pub args: Vec<String>,
    /// Names of the variables it gets; their values are not shown.
    pub env: Vec<String>,
    pub is_enabled: bool,
    pub state: McpState,
    /// Why it failed.
    #[schema(required)]
    pub error: Option<String>,
    #[schema(required)]
    pub server_info: Option<McpServerInfo>,
    pub tools: Vec<McpTool>,
    /// The last lines of its log, oldest first.
    pub log_tail: Vec<String>,
    #[schema(required)]
    pub pid: Option<u32>,
    /// When it began to run.
    #[schema(required)]
    pub started: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpState {
    Starting,
    Running,
    Stopped,
    Failed,
    Disabled,
}

/// What a server says of itself.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct McpServerInfo {
    pub name: String,
    pub version: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct McpTool {
    /// The name that its server gives it.
    pub name: String,
    /// The name that the model uses.
    pub full_name: String,
    #[schema(required)]
    pub title: Option<String>,
    #[schema(required)]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    #[schema(value_type = Object)]
    pub input_schema: serde_json::Map<String, serde_json::Value>,
    /// The server's own word for it.
    #[schema(required)]
    pub is_read_only: Option<bool>,
    pub policy: ToolPolicy,
}

/// A server to add or change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct McpServerPut {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    /// Left out: stays as it is. A name with null keeps the value that is stored.
    env: Option<BTreeMap<String, Option<String>>>,
    /// Left out: stays as it is; new servers are enabled.
    is_enabled: Option<bool>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PolicyPut {
    policy: ToolPolicy,
}

/// `/x/mcp`.
pub fn routes() -> OpenApiRouter<Arc<Pool>> {
    OpenApiRouter::new()
        .routes(routes!(mcp_servers))
        .routes(routes!(put_mcp_server, delete_mcp_server))
        .routes(routes!(restart_mcp_server))
        .routes(routes!(put_tool_policy))
}

/// Tells everyone who watches what becomes of servers, for as long as the pool lives.
pub async fn forward(pool: &Pool, events: &Events) {
    let mut changes = pool.subscribe();
    loop {
        match changes.recv().await {
            Ok(PoolChange::Server { name }) => {
                // One that is gone by now is told of as removed.
                if let Some(status) = pool.server(&name) {
                    let server = server(status, pool).await;
                    events.publish(Event::McpServer { server });
                }
            }
            Ok(PoolChange::Removed { name }) => events.publish(Event::McpServerRemoved { name }),
            // Both are cured by reading everything anew.
            Ok(PoolChange::File) | Err(RecvError::Lagged(_)) => events.publish(Event::McpChanged),
            Err(RecvError::Closed) => return,
        }
    }
}

/// List MCP servers and their tools.
#[utoipa::path(get, path = "/x/mcp", responses((status = 200, body = McpServers)))]
async fn mcp_servers(State(pool): State<Arc<Pool>>) -> Json<McpServers> {
    let policies = pool.all_policies().await;
    let servers = pool.servers();
    Json(McpServers {
        servers: servers
            .into_iter()
            .map(|status| wire(status, &policies))
            .collect(),
        path: pool.settings().path().display().to_string(),
        error: pool.error(),
    })
}

/// Add an MCP server, or change it.
#[utoipa::path(
    put,
    path = "/x/mcp/{name}",
    params(("name" = String, Path)),
    request_body = McpServerPut,
    responses(
        (status = 200, body = McpServer),
        (status = 400, description = "The server cannot be like this", body = ErrorBody),
        (status = 409, description = "mcp.json cannot be read, so it is not written", body = ErrorBody)
    )
)]
async fn put_mcp_server(
    State(pool): State<Arc<Pool>>,
    Path(name): Path<String>,
    Body(put): Body<McpServerPut>,
) -> Result<Json<McpServer>, Problem> {
    let edit = McpServerEdit {
        command: put.command,
        args: put.args,
        env: put.env,
        is_enabled: put.is_enabled,
    };
    let status = pool.put(&name, edit).await.map_err(problem)?;
    Ok(Json(server(status, &pool).await))
}

/// Take an MCP server out of mcp.json and end it.
#[utoipa::path(
    delete,
    path = "/x/mcp/{name}",
    params(("name" = String, Path)),
    responses(
        (status = 204),
        (status = 404, description = "There is no such server", body = ErrorBody),
        (status = 409, description = "mcp.json cannot be read, so it is not written", body = ErrorBody)
    )
)]
async fn delete_mcp_server(
    State(pool): State<Arc<Pool>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    pool.remove(&name).await.map_err(problem)?;
    Ok(StatusCode::NO_CONTENT)
}

/// End an MCP server and start it anew.
#[utoipa::path(
    post,
    path = "/x/mcp/{name}/restart",
    params(("name" = String, Path)),
    responses(
        (status = 200, body = McpServer),
        (status = 404, description = "There is no such server", body = ErrorBody)
    )
)]
async fn restart_mcp_server(
    State(pool): State<Arc<Pool>>,
    Path(name): Path<String>,
) -> Result<Json<McpServer>, Problem> {
    let status = pool.restart(&name).await.map_err(problem)?;
    Ok(Json(server(status, &pool).await))
}

/// Say what a tool may do.
#[utoipa::path(
    put,
    path = "/x/mcp/{name}/tools/{tool}/policy",
    params(("name" = String, Path), ("tool" = String, Path)),
    request_body = PolicyPut,
    responses(
        (status = 200, body = McpServer),
        (status = 404, description = "There is no such server or tool", body = ErrorBody)
    )
)]
async fn put_tool_policy(
    State(pool): State<Arc<Pool>>,
    Path((name, tool)): Path<(String, String)>,
    Body(put): Body<PolicyPut>,
) -> Result<Json<McpServer>, Problem> {
    pool.set_policy(&name, &tool, put.policy)
        .await
        .map_err(problem)?;
    let status = pool.server(&name);
    let status = status.ok_or_else(|| problem(PoolError::NoServer { name }))?;
    Ok(Json(server(status, &pool).await))
}

async fn server(status: ServerStatus, pool: &Pool) -> McpServer {
    let policies = pool.all_policies().await;
    wire(status, &policies)
}

fn wire(status: ServerStatus, policies: &BTreeMap<String, ToolPolicy>) -> McpServer {
    McpServer {
        name: status.name,
        command: status.command,
        args: status.args,
        env: status.env,
        is_enabled: status.is_enabled,
        state: match status.state {
            macmlx_mcp::ServerState::Starting => McpState::Starting,
            macmlx_mcp::ServerState::Running => McpState::Running,
            macmlx_mcp::ServerState::Stopped => McpState::Stopped,
            macmlx_mcp::ServerState::Failed => McpState::Failed,
            macmlx_mcp::ServerState::Disabled => McpState::Disabled,
        },
        error: status.error,
        server_info: status.info.map(|info| McpServerInfo {
            name: info.name,
            version: info.version,
        }),
        tools: status
            .tools
            .into_iter()
            .map(|tool| McpTool {
                policy: policies.get(&tool.full_name).copied().unwrap_or_default(),
                name: tool.name,
                full_name: tool.full_name,
                title: tool.title,
                description: tool.description,
                input_schema: tool.input_schema,
                is_read_only: tool.is_read_only,
            })
            .collect(),
        log_tail: status.log_tail,
        pid: status.pid,
        started: status.started.map(|started| {
            let since_epoch = started.duration_since(UNIX_EPOCH).unwrap_or_default();
            rfc3339(since_epoch.as_secs())
        }),
    }
}

fn problem(error: PoolError) -> Problem {
    let message = error.to_string();
    match error {
        PoolError::NoServer { .. } => Problem::not_found("mcp_server_not_found", message),
        PoolError::NoTool { .. } => Problem::not_found("tool_not_found", message),
        PoolError::File(error) => match error {
            McpServersError::Name { .. } => Problem::invalid_param("name", message),
            McpServersError::NoCommand => Problem::invalid_param("command", message),
            McpServersError::NoValue { name } => {
                Problem::invalid_param(format!("env.{name}"), message)
            }
            McpServersError::NotSet { .. } | McpServersError::NoHome { .. } => {
                Problem::invalid(message)
            }
            McpServersError::Unreadable { .. } => Problem::conflict("mcp_json_unreadable", message),
            McpServersError::Io { .. } => Problem::failed("failed", message),
        },
        PoolError::Settings(error) => match error {
            macmlx_settings::Error::Unreadable { .. } => {
                Problem::conflict("settings_unreadable", message)
            }
            macmlx_settings::Error::Invalid { key, .. } => Problem::invalid_param(key, message),
            macmlx_settings::Error::NotAnObject => Problem::invalid(message),
            macmlx_settings::Error::Io { .. } => Problem::failed("failed", message),
        },
        PoolError::Ending => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message),
    }
}
