//! Servers that are programs and speak on their standard input and output.

use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use macmlx_settings::{McpCommand, McpServers};
use rmcp::ServiceExt;
use tokio::process::Command;

use super::{Connection, OpenError, Transport};
use crate::{
    client::Client,
    guard::Guard,
    log_tail::LogTail,
    login_shell::LoginShell,
    observed::Observed,
    process::{Pipes, Process},
};

/// What a server gets of our environment, beside what mcp.json gives it. Tokens and keys that are
/// meant for us stay with us.
const INHERITED: &[&str] = &[
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

pub(crate) struct Stdio {
    pub(crate) command: McpCommand,
    pub(crate) settings: Arc<McpServers>,
    pub(crate) shell: Arc<LoginShell>,
    pub(crate) guard: Arc<Guard>,
}

impl Transport for Stdio {
    fn prepare(&self) -> BoxFuture<'_, ()> {
        self.shell.variables().map(|_| ()).boxed()
    }

    fn open(
        &self,
        client: Client,
        log: Arc<LogTail>,
    ) -> BoxFuture<'_, Result<Connection, OpenError>> {
        async move {
            let shell = self.shell.variables().await;
            let command = self.settings.expand(&self.command, shell)?;
            let spawned = self.spawn(&command, shell, log.clone());
            let (mut process, pipes) = spawned.map_err(|source| {
                let is_missing = source.kind() == io::ErrorKind::NotFound;
                match &command.cwd {
                    Some(cwd) if is_missing && !Path::new(cwd).is_dir() => {
                        OpenError::NoFolder { cwd: cwd.clone() }
                    }
                    _ if is_missing => OpenError::NotFound {
                        command: command.command.clone(),
                    },
                    _ => OpenError::Spawn {
                        command: command.command.clone(),
                        source,
                    },
                }
            })?;
            let Pipes { stdin, stdout } = pipes;
            match client.serve((Observed::new(stdout, log), stdin)).await {
                Ok(service) => Ok(Connection {
                    service,
                    process: Some(process),
                }),
                Err(error) => Err(match process.wait_for_end().await {
                    Some(status) => OpenError::Exited { status },
                    None => OpenError::Handshake {
                        reason: error.to_string(),
                    },
                }),
            }
        }
        .boxed()
    }
}

impl Stdio {
    fn spawn(
        &self,
        command: &McpCommand,
        shell: &BTreeMap<String, String>,
        log: Arc<LogTail>,
    ) -> io::Result<(Process, Pipes)> {
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some((*name, self.shell.own().get(*name)?)));
        let mut process = Command::new(&command.command);
        process
            .args(&command.args)
            .env_clear()
            .envs(inherited)
            .envs(shell.get("PATH").map(|path| ("PATH", path)))
            .envs(&command.env);
        if let Some(cwd) = &command.cwd {
            process.current_dir(cwd);
        }
        Process::spawn(&mut process, &self.guard, log)
    }
}
