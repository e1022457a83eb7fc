//! One line of a log.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// How much an entry matters; the first matters most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = LogLevel)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// What part of the application an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = LogCategory)]
pub enum Category {
    /// Models, memory, the MLX thread.
    Engine,
    /// Prompts and answers; never their text.
    Inference,
    Download,
    /// Requests through the door.
    Http,
    Mcp,
    System,
}

impl Category {
    /// Where code of a module belongs.
    pub fn of_target(target: &str) -> Self {
        let is_in = |modules: &[&str]| {
            modules.iter().any(|module| {
                target
                    .strip_prefix(module)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            })
        };
        if is_in(&["macmlx_engine", "macmlx_models"]) {
            Self::Engine
        } else if is_in(&[
            "macmlx_inference",
            "macmlx_output",
            "macmlx_chat",
            "macmlx_protocol",
            "macmlx_server::live",
            "macmlx_server::generate",
            "macmlx_control::chat",
        ]) {
            Self::Inference
        } else if is_in(&[
            "macmlx_store::hub",
            "macmlx_store::downloads",
            "macmlx_control::downloads",
            "hf_hub",
        ]) {
            Self::Download
        } else if is_in(&["macmlx_server", "macmlx_control", "macmlx_host::door"]) {
            Self::Http
        } else if is_in(&["macmlx_mcp", "rmcp"]) {
            Self::Mcp
        } else {
            Self::System
        }
    }
}

/// An entry as it is kept and shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = LogEntry)]
pub struct Entry {
    /// Rises by one with each entry.
    #[serde(default)]
    #[schema(required)]
    pub id: u64,
    /// RFC 3339, in UTC.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    pub level: Level,
    pub category: Category,
    pub message: String,
    /// What else was noted, by name.
    #[serde(default)]
    #[schema(value_type = Object, required)]
    pub fields: Map<String, Value>,
}

/// An entry before it has its place.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct NewEntry {
    pub time: Timestamp,
    pub level: Level,
    pub category: Category,
    pub message: String,
    #[serde(default)]
    pub fields: Map<String, Value>,
}

impl NewEntry {
    /// Something that happens now.
    pub fn now(
        level: Level,
        category: Category,
        message: impl Into<String>,
        fields: Map<String, Value>,
    ) -> Self {
        Self {
            time: Timestamp::now(),
            level,
            category,
            message: message.into(),
            fields,
        }
    }

    pub(super) fn with_id(self, id: u64) -> Entry {
        Entry {
            id,
            time: self.time,
            level: self.level,
            category: self.category,
            message: self.message,
            fields: self.fields,
        }
    }
}

impl From<&Entry> for NewEntry {
    fn from(entry: &Entry) -> Self {
        Self {
            time: entry.time,
            level: entry.level,
            category: entry.category,
            message: entry.message.clone(),
            fields: entry.fields.clone(),
        }
    }
}
