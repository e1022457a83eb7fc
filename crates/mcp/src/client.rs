//! Our side of a connection: what servers may tell and ask us.

#![expect(deprecated, reason = "servers of today still send log messages")]

use std::sync::Arc;

use rmcp::{
    ClientHandler, RoleClient,
    model::{ClientConfig, Implementation, LoggingMessageNotificationParam},
    service::NotificationContext,
};
use tokio::sync::Notify;

use crate::log_tail::LogTail;

/// Notes what a server says. It offers servers nothing: no sampling, no roots, no questions.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) tools_changed: Arc<Notify>,
    pub(crate) log: Arc<LogTail>,
}

impl ClientHandler for Client {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text = match message.data {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        self.log.push(&text);
    }

    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.client_info = Implementation::new("macMLX", env!("CARGO_PKG_VERSION"));
        info
    }
}
