//! Conversation turns, tools and tool calls, in no dialect's spelling.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The speaker of a turn. `developer` turns of a client are `System` here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: Vec<ContentPart>,
    /// Hidden thinking of an earlier assistant turn, as the client replays it.
    pub reasoning: Option<String>,
    /// Calls an assistant turn made.
    pub tool_calls: Vec<ToolCall>,
    /// The call a `Role::Tool` turn answers.
    pub tool_call_id: Option<String>,
    /// Participant name or, on a tool turn, the tool's name.
    pub name: Option<String>,
}

impl Message {
    /// A turn of plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: vec![ContentPart::Text(text.into())],
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
        }
    }

    /// All text parts, joined without a separator.
    pub fn joined_text(&self) -> String {
        self.content
            .iter()
            .filter_map(|part| match part {
                ContentPart::Text(text) => Some(text.as_str()),
                ContentPart::Image(_) => None,
            })
            .collect()
    }
}

/// One piece of a turn. Audio joins when a model here can hear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContentPart {
    Text(String),
    Image(Image),
}

/// An image a client sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    pub source: ImageSource,
    /// Where it stands in the client's request, for a refusal that names it.
    pub param: String,
}

/// Where an image's bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageSource {
    /// The image is in the request; `data` is base64 text, not decoded.
    Inline { media_type: String, data: String },
    /// The image is elsewhere and has not been fetched.
    Url(String),
}

/// A tool the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    pub description: Option<String>,
    /// JSON Schema of the arguments object.
    pub parameters: Value,
    /// The arguments must satisfy the schema.
    pub strict: bool,
}

/// Whether and which tool must be called.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// Tools are not offered.
    None,
    /// Some tool must be called.
    Required,
    /// This tool must be called.
    Named(String),
}

/// A call the model made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON text of the arguments object, as the model wrote it.
    pub arguments: String,
}
