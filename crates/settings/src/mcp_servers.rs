//! `mcp.json`: the MCP servers of a person, in the shape desktop clients share.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use crate::{Environment, Home, state_file};

mod expand;

/// Key of the servers in the file.
const SERVERS: &str = "mcpServers";

/// The servers in `mcp.json`. Everything else in the file, and whatever else stands with a server,
/// stays as it is.
#[derive(Debug)]
pub struct McpServers {
    path: PathBuf,
    user_home: Option<PathBuf>,
    variables: BTreeMap<String, String>,
}

/// One server as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    pub is_enabled: bool,
    pub kind: McpServerKind,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpServerKind {
    /// A program that speaks on its standard input and output.
    Stdio(McpCommand),
    /// Something that cannot be used, and why.
    Unusable { reason: String },
}

/// A program to run. As the file has it, with `~` and variables, or expanded.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct McpCommand {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Where it runs; none: in the person's home folder.
    pub cwd: Option<String>,
}

/// Values of `env` are often secrets.
impl std::fmt::Debug for McpCommand {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("McpCommand")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .finish()
    }
}

/// What to write for a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct McpServerEdit {
    pub command: String,
    pub args: Vec<String>,
    /// Variables of the environment. `None` leaves them as they are. Names that are missing here
    /// are removed; a name without a value keeps its stored value, which no route shows.
    pub env: Option<BTreeMap<String, Option<String>>>,
    /// None: left as it is, new servers are enabled.
    pub is_enabled: Option<bool>,
}

/// Why `mcp.json` cannot be read or written, or a server not be run as it stands there.
#[derive(Debug, thiserror::Error)]
pub enum McpServersError {
    #[error("cannot access {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not JSON that can be read ({reason}); repair or remove it", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("`{name}` is no name for a server: it is visible text on one line")]
    Name { name: String },
    #[error("`command` is empty: name the program to run")]
    NoCommand,
    #[error("`env.{name}` has no value, and none is stored")]
    NoValue { name: String },
    #[error("`${{{variable}}}` in `{place}` is not set; set it, or write the value into mcp.json")]
    NotSet { variable: String, place: String },
    #[error("`~` in `{place}` has no meaning here: HOME is not set")]
    NoHome { place: String },
}

impl McpServers {
    /// Nothing is read yet.
    pub fn new(home: &Home, environment: &Environment) -> Self {
        Self {
            path: home.mcp_file(),
            user_home: environment.user_home.clone(),
            variables: environment.variables.clone(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The servers in the order of the file; none if there is no file. Blocks on the disk.
    pub fn load(&self) -> Result<Vec<McpServer>, McpServersError> {
        let document = self.read()?;
        Ok(document.servers.iter().map(server).collect())
    }

    /// Adds a server or changes one; returns it as the file now has it. Blocks on the disk.
    pub fn put(&self, name: &str, edit: McpServerEdit) -> Result<McpServer, McpServersError> {
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(McpServersError::Name { name: name.into() });
        }
        if edit.command.trim().is_empty() {
            return Err(McpServersError::NoCommand);
        }
        let _alone = self.lock()?;
        let mut document = self.read()?;
        let mut entry = match document.servers.get(name) {
            Some(Value::Object(entry)) => entry.clone(),
            _ => Map::new(),
        };
        // A command takes the place of an address.
        for key in ["url", "type", "transport"] {
            entry.shift_remove(key);
        }
        entry.insert("command".into(), json!(edit.command));
        entry.insert("args".into(), json!(edit.args));
        if let Some(env) = edit.env {
            let stored = entry.get("env").and_then(Value::as_object).cloned();
            let mut kept = Map::new();
            for (variable, value) in env {
                let value = match value {
                    Some(value) => Value::String(value),
                    None => stored
                        .as_ref()
                        .and_then(|stored| stored.get(&variable).cloned())
                        .ok_or_else(|| McpServersError::NoValue {
                            name: variable.clone(),
                        })?,
                };
                kept.insert(variable, value);
            }
            entry.insert("env".into(), Value::Object(kept));
        }
        match edit.is_enabled {
            Some(true) => {
                entry.shift_remove("disabled");
            }
            Some(false) => {
                entry.insert("disabled".into(), json!(true));
            }
            None => {}
        }
        let entry = Value::Object(entry);
        let written = server((&name.to_owned(), &entry));
        document.servers.insert(name.into(), entry);
        self.write(document)?;
        Ok(written)
    }

    /// Forgets a server; returns whether it was there. Blocks on the disk.
    pub fn remove(&self, name: &str) -> Result<bool, McpServersError> {
        let _alone = self.lock()?;
        let mut document = self.read()?;
        if document.servers.shift_remove(name).is_none() {
            return Ok(false);
        }
        self.write(document)?;
        Ok(true)
    }

    /// The command with `~`, `${VAR}` and `${VAR:-default}` replaced. Variables are looked up in
    /// our own environment, then in `more` (that of the login shell).
    pub fn expand(
        &self,
        command: &McpCommand,
        more: &BTreeMap<String, String>,
    ) -> Result<McpCommand, McpServersError> {
        let scope = expand::Scope {
            user_home: self.user_home.as_deref(),
            variables: [&self.variables, more],
        };
        Ok(McpCommand {
            command: scope.expand(&command.command, "command")?,
            args: command
                .args
                .iter()
                .map(|arg| scope.expand(arg, "args"))
                .collect::<Result<_, _>>()?,
            env: command
                .env
                .iter()
                .map(|(name, value)| {
                    let value = scope.expand(value, &format!("env.{name}"))?;
                    Ok((name.clone(), value))
                })
                .collect::<Result<_, McpServersError>>()?,
            cwd: match &command.cwd {
                Some(cwd) => Some(scope.expand(cwd, "cwd")?),
                None => self
                    .user_home
                    .as_ref()
                    .map(|home| home.to_string_lossy().into_owned()),
            },
        })
    }

    /// Keeps other writers out until it is dropped.
    fn lock(&self) -> Result<File, McpServersError> {
        state_file::lock(&self.path).map_err(|source| McpServersError::Io {
            path: self.path.clone(),
            source,
        })
    }

    fn read(&self) -> Result<Document, McpServersError> {
        let unreadable = |reason: String| McpServersError::Unreadable {
            path: self.path.clone(),
            reason,
        };
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Document::default());
            }
            Err(source) => {
                return Err(McpServersError::Io {
                    path: self.path.clone(),
                    source,
                });
            }
        };
        if bytes.trim_ascii().is_empty() {
            return Ok(Document::default());
        }
        let mut whole: Map<String, Value> =
            macmlx_json::read_edited(&bytes).map_err(|error| unreadable(error.to_string()))?;
        let servers = match whole.get_mut(SERVERS).map(Value::take) {
            None => Map::new(),
            Some(Value::Object(servers)) => servers,
            Some(_) => return Err(unreadable(format!("`{SERVERS}` is not an object"))),
        };
        Ok(Document { whole, servers })
    }

    fn write(&self, document: Document) -> Result<(), McpServersError> {
        let Document { mut whole, servers } = document;
        whole.insert(SERVERS.into(), Value::Object(servers));
        state_file::write_edited(&self.path, whole).map_err(|source| McpServersError::Io {
            path: self.path.clone(),
            source,
        })
    }
}

/// The file: `servers` stands apart from the rest.
#[derive(Default)]
struct Document {
    whole: Map<String, Value>,
    servers: Map<String, Value>,
}

fn server((name, entry): (&String, &Value)) -> McpServer {
    let is_disabled = entry.get("disabled").and_then(Value::as_bool) == Some(true);
    McpServer {
        name: name.clone(),
        is_enabled: !is_disabled,
        kind: match command(entry) {
            Ok(command) => McpServerKind::Stdio(command),
            Err(reason) => McpServerKind::Unusable { reason },
        },
    }
}

fn command(entry: &Value) -> Result<McpCommand, String> {
    let Value::Object(entry) = entry else {
        return Err("its entry in mcp.json is not an object".into());
    };
    let kind = ["type", "transport"]
        .into_iter()
        .find_map(|key| entry.get(key).and_then(Value::as_str));
    match kind {
        Some("sse") => return Err("not supported yet: SSE".into()),
        Some("stdio") => {}
        _ if entry.contains_key("url") => return Err("not supported yet: streamable HTTP".into()),
        Some("http" | "streamable-http" | "streamableHttp") => {
            return Err("not supported yet: streamable HTTP".into());
        }
        Some(other) => return Err(format!("not supported: servers of type `{other}`")),
        None => {}
    }
    let text = |key: &str, value: &Value| {
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| format!("`{key}` in mcp.json is not text"))
    };
    let command = match entry.get("command") {
        Some(command) => text("command", command)?,
        None => return Err("`command` is missing in mcp.json".into()),
    };
    let args = match entry.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(args)) => args
            .iter()
            .map(|arg| text("args", arg))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err("`args` in mcp.json is not a list".into()),
    };
    let env = match entry.get("env") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(Value::Object(env)) => env
            .iter()
            .map(|(name, value)| Ok((name.clone(), variable(name, value)?)))
            .collect::<Result<_, String>>()?,
        Some(_) => return Err("`env` in mcp.json is not an object".into()),
    };
    let cwd = match entry.get("cwd") {
        None | Some(Value::Null) => None,
        Some(cwd) => Some(text("cwd", cwd)?),
    };
    Ok(McpCommand {
        command,
        args,
        env,
        cwd,
    })
}

/// Numbers and switches are written without quotes by many.
fn variable(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("`env.{name}` in mcp.json is not text"))
        }
    }
}

#[cfg(test)]
mod tests;
