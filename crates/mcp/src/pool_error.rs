//! What may stand against a wish of a person.

use macmlx_settings::McpServersError;

/// Why something cannot be done to a server.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    #[error("there is no MCP server `{name}` in mcp.json")]
    NoServer { name: String },
    #[error("the MCP server `{server}` offers no tool `{tool}` now")]
    NoTool { server: String, tool: String },
    #[error(transparent)]
    File(#[from] McpServersError),
    #[error(transparent)]
    Settings(#[from] macmlx_settings::Error),
    #[error("macMLX is about to end")]
    Ending,
}
