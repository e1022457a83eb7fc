//! A tool of a server, and what the model is told of it.

use macmlx_inference::ToolDefinition;
use serde_json::{Map, Value, json};

/// A tool as the person and the model see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Name of its server in mcp.json.
    pub server: String,
    /// The name that its server gives it.
    pub name: String,
    /// The name that the model uses: `server__tool`, in letters that every format takes.
    pub full_name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// JSON Schema of the arguments object.
    pub input_schema: Map<String, Value>,
    /// The server's own word for it, which nothing here trusts.
    pub is_read_only: Option<bool>,
}

impl Tool {
    /// `full_name` is not known yet: it depends on the other tools of the pool.
    pub(crate) fn from_server(server: &str, tool: rmcp::model::Tool) -> Self {
        let annotations = tool.annotations;
        let annotated_title = annotations
            .as_ref()
            .and_then(|annotations| annotations.title.clone());
        Self {
            server: server.into(),
            name: tool.name.into_owned(),
            full_name: String::new(),
            title: tool.title.or(annotated_title),
            description: tool.description.map(Into::into),
            input_schema: tool.input_schema.as_ref().clone(),
            is_read_only: annotations.and_then(|annotations| annotations.read_only_hint),
        }
    }

    pub(crate) fn definition(&self) -> ToolDefinition {
        let mut parameters = self.input_schema.clone();
        // Chat templates look for both, which MCP lets servers leave out.
        parameters.entry("type").or_insert_with(|| json!("object"));
        parameters.entry("properties").or_insert_with(|| json!({}));
        ToolDefinition {
            name: self.full_name.clone(),
            description: self.description.clone().or_else(|| self.title.clone()),
            parameters: Value::Object(parameters),
            strict: false,
        }
    }
}
