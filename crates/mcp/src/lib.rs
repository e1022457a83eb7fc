//! MCP servers as a client: a pool that keeps them running, and a tool loop that lets a model use
//! what they offer.
//!
//! [`Pool`] starts the servers of `mcp.json` and knows their tools. [`ToolLoop`] is a backend
//! around a backend: it offers those tools to the model, carries out the calls that a person or a
//! policy allows, and lets the model go on with the results.

mod approvals;
mod client;
#[cfg(test)]
#[path = "../tests/support/fake_server.rs"]
mod fake_server;
mod guard;
mod log_tail;
mod login_shell;
mod observed;
mod pool;
mod pool_error;
mod process;
mod server;
mod session;
mod status;
mod tool;
mod tool_loop;
mod tool_names;
mod tool_result;
mod transport;

pub use approvals::{Approvals, DecideError, Decision};
pub use login_shell::LoginShell;
pub use pool::{Pool, PoolChange, PoolSetup};
pub use pool_error::PoolError;
pub use status::{ServerInfo, ServerState, ServerStatus};
pub use tool::Tool;
pub use tool_loop::{Limits, ToolLoop};
