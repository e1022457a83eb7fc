//! Typed settings, every path on disk and every environment variable, resolved once at the edge.

mod aliases;
mod api_keys;
mod control_token;
pub mod env;
mod file;
mod hf_token;
mod home;
mod live;
mod mcp_servers;
mod model_parameters;
mod sampling;
mod schema;
mod secret;
mod setting;
pub mod state_file;
mod tool_policies;
mod visitors;
mod watched;

pub use aliases::Aliases;
pub use api_keys::{ApiKeys, ApiKeysError, NamedKey};
pub use control_token::control_token;
pub use env::Environment;
pub use file::{Error, Loaded, load, patch};
pub use hf_token::{HfToken, HfTokenError, SecretFile, SecretStore};
pub use home::{Home, NoHome};
pub use live::LiveSettings;
pub use mcp_servers::{
    McpCommand, McpServer, McpServerEdit, McpServerKind, McpServers, McpServersError,
};
pub use model_parameters::{ModelParameters, ModelParametersError, ModelParametersFolder};
pub use schema::{Language, SETTINGS, Settings, Theme, UnknownModels};
pub use setting::{Choice, ChoiceValue, Control, Group, Setting, Unit};
pub use tool_policies::{ToolPolicies, ToolPolicy};
pub use visitors::{HostPattern, OriginPattern, PatternError};
