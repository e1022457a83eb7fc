//! Conversations as the wire writes them: the form of their files, with dates for people.

use macmlx_settings::ModelParameters;
use macmlx_store::conversations::{
    self as store, AnswerTimings, Damaged, Ending, Image, List, Role, Summary, TokenCounts,
    ToolCall,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// A conversation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Conversation {
    id: String,
    title: String,
    messages: Vec<Message>,
    created_at: String,
    updated_at: String,
    /// The model that answers.
    #[serde(rename = "modelID")]
    #[schema(required)]
    model_id: Option<String>,
    /// Empty: none of its own.
    system_prompt: String,
    /// What differs from the model's own parameters here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    parameters: Option<ModelParameters>,
}

/// A message.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    id: String,
    role: Role,
    content: String,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token_count: Option<u32>,
    images: Vec<Image>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reasoning_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    usage: Option<TokenCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    timings: Option<AnswerTimings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    finish_reason: Option<Ending>,
    /// Why there is no answer, or no more of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// The model that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    model: Option<String>,
}

/// All conversations, or those that were looked for.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct ConversationList {
    /// Newest first.
    conversations: Vec<ConversationSummary>,
    /// Files that cannot be read; they are left as they are.
    damaged: Vec<DamagedConversation>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
struct ConversationSummary {
    id: String,
    title: String,
    created_at: String,
    updated_at: String,
    #[schema(required)]
    model: Option<String>,
    message_count: usize,
    /// The last words said.
    preview: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
struct DamagedConversation {
    path: String,
    reason: String,
}

/// Returns an id in the spelling of the files.
pub(crate) fn id_text(id: Uuid) -> String {
    id.hyphenated().to_string().to_uppercase()
}

impl From<store::Conversation> for Conversation {
    fn from(stored: store::Conversation) -> Self {
        Self {
            id: id_text(stored.id),
            title: stored.title,
            messages: stored.messages.into_iter().map(Message::from).collect(),
            created_at: stored.created_at.to_string(),
            updated_at: stored.updated_at.to_string(),
            model_id: stored.model_id,
            system_prompt: stored.system_prompt,
            parameters: stored.parameters,
        }
    }
}

impl From<store::Message> for Message {
    fn from(stored: store::Message) -> Self {
        Self {
            id: id_text(stored.id),
            role: stored.role,
            content: stored.content,
            timestamp: stored.timestamp.to_string(),
            token_count: stored.token_count,
            images: stored.images,
            reasoning: stored.reasoning,
            reasoning_seconds: stored.reasoning_seconds,
            tool_calls: stored.tool_calls,
            usage: stored.usage,
            timings: stored.timings,
            finish_reason: stored.finish_reason,
            error: stored.error,
            model: stored.model,
        }
    }
}

impl From<List> for ConversationList {
    fn from(list: List) -> Self {
        Self {
            conversations: list
                .conversations
                .into_iter()
                .map(ConversationSummary::from)
                .collect(),
            damaged: list
                .damaged
                .into_iter()
                .map(|Damaged { path, reason }| DamagedConversation {
                    path: path.display().to_string(),
                    reason,
                })
                .collect(),
        }
    }
}

impl From<Summary> for ConversationSummary {
    fn from(summary: Summary) -> Self {
        Self {
            id: id_text(summary.id),
            title: summary.title,
            created_at: summary.created_at.to_string(),
            updated_at: summary.updated_at.to_string(),
            model: summary.model_id,
            message_count: summary.message_count,
            preview: summary.preview,
        }
    }
}
