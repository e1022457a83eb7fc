//! A conversation and its messages, as their file holds them.
//!
//! Optional keys are ours; the others are what macMLX has always written. Keys that others put there
//! stay.

use jiff::Timestamp;
use macmlx_settings::ModelParameters;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::stamp;

/// Title of a conversation without messages.
pub(super) const UNTITLED: &str = "New Chat";

/// Longest title that is made of a message.
const TITLE_CHARS: usize = 40;

/// Longest preview of a conversation.
const PREVIEW_CHARS: usize = 120;

/// A conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    #[serde(serialize_with = "in_upper_case")]
    pub id: Uuid,
    #[serde(default = "untitled")]
    pub title: String,
    #[serde(default)]
    pub messages: Vec<Message>,
    #[serde(with = "stamp")]
    pub created_at: Timestamp,
    #[serde(with = "stamp")]
    pub updated_at: Timestamp,
    /// The model that answers.
    #[serde(rename = "modelID", default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// Empty: none of its own.
    #[serde(default)]
    pub system_prompt: String,
    /// What differs from the model's own parameters here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<ModelParameters>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    #[serde(serialize_with = "in_upper_case")]
    pub id: Uuid,
    pub role: Role,
    pub content: String,
    #[serde(with = "stamp")]
    pub timestamp: Timestamp,
    /// Tokens of an answer; `None` for other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u32>,
    #[serde(default)]
    pub images: Vec<Image>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenCounts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<AnswerTimings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<Ending>,
    /// Why there is no answer, or no more of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = MessageRole)]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A picture beside a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = MessageImage)]
pub struct Image {
    /// `file://` URL of a file in the conversation's own folder.
    #[serde(rename = "fileURL")]
    pub file_url: String,
    #[serde(rename = "mimeType")]
    pub mime_type: String,
    #[serde(flatten)]
    #[schema(ignore)]
    pub other: Map<String, Value>,
}

/// A tool that the model called while it answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ToolCall)]
pub struct ToolCall {
    pub id: String,
    /// The name that the model knows it by.
    pub name: String,
    /// JSON text of the arguments object, as the model wrote it.
    pub arguments: String,
    /// The MCP server that carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub state: CallState,
    /// What the model was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub other: Map<String, Value>,
}

/// What became of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ToolCallState)]
pub enum CallState {
    Done,
    Failed,
    Denied,
    Cancelled,
}

/// Tokens that an answer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MessageUsage)]
pub struct TokenCounts {
    pub prompt_tokens: u32,
    /// Tokens of the prompt that the prefix cache had.
    pub cached_tokens: u32,
    pub completion_tokens: u32,
    /// Tokens of the completion inside reasoning blocks.
    pub reasoning_tokens: u32,
}

/// How long an answer took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MessageTimings)]
pub struct AnswerTimings {
    /// Waiting for the model to load.
    pub load_ms: u64,
    /// Waiting to be admitted.
    pub queue_ms: u64,
    pub prefill_ms: u64,
    pub decode_ms: u64,
    /// Time from the question to the first visible token, waiting included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<u64>,
    /// Speed of decoding; absent where too little was written to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FinishReason)]
pub enum Ending {
    Stop,
    Length,
    ToolCalls,
    Cancelled,
    Error,
}

impl Conversation {
    /// A conversation in which nothing was said yet.
    pub fn new() -> Self {
        let now = stamp::now();
        Self {
            id: Uuid::new_v4(),
            title: untitled(),
            messages: Vec::new(),
            created_at: now,
            updated_at: now,
            model_id: None,
            system_prompt: String::new(),
            parameters: None,
            other: Map::new(),
        }
    }

    /// Titles a conversation that has no title yet by the first words of its first question;
    /// whether it did.
    pub fn take_title(&mut self) -> bool {
        if self.title != UNTITLED {
            return false;
        }
        let first = self
            .messages
            .iter()
            .find(|message| message.role == Role::User)
            .map(|message| shorten(&message.content, TITLE_CHARS))
            .filter(|title| !title.is_empty());
        match first {
            Some(title) => {
                self.title = title;
                true
            }
            None => false,
        }
    }

    /// Takes the title away; the next question gives it a new one.
    pub fn forget_title(&mut self) {
        self.title = untitled();
        self.take_title();
    }

    /// Replaces the message with the same id, or adds this one.
    pub fn put(&mut self, message: Message) {
        match self.messages.iter_mut().find(|one| one.id == message.id) {
            Some(there) => *there = message,
            None => self.messages.push(message),
        }
    }

    /// The last words said, for a list.
    pub(super) fn preview(&self) -> String {
        self.messages
            .iter()
            .rev()
            .map(|message| shorten(&message.content, PREVIEW_CHARS))
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    }

    /// Whether every word, which is in lower case, is in the title or the messages.
    pub(super) fn has(&self, words: &[String]) -> bool {
        let mut text = self.title.to_lowercase();
        for message in &self.messages {
            text.push('\n');
            text.push_str(&message.content.to_lowercase());
        }
        words.iter().all(|word| text.contains(word))
    }
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}

impl Message {
    /// A message of plain text, of now.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            id: Uuid::new_v4(),
            role,
            content: content.into(),
            timestamp: stamp::now(),
            token_count: None,
            images: Vec::new(),
            reasoning: None,
            reasoning_seconds: None,
            tool_calls: Vec::new(),
            usage: None,
            timings: None,
            finish_reason: None,
            error: None,
            model: None,
            other: Map::new(),
        }
    }
}

fn untitled() -> String {
    UNTITLED.to_owned()
}

/// The first words of a text on one line.
fn shorten(text: &str, chars: usize) -> String {
    // Enough for the words that can be shown, however long the text is.
    let words: Vec<&str> = text.split_whitespace().take(chars).collect();
    let line = words.join(" ");
    match line.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

fn in_upper_case<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(id.hyphenated().encode_upper(&mut Uuid::encode_buffer()))
}
