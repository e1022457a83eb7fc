//! What a client of `/api/v1/chat` is told, whole and in pieces.

use serde::Serialize;
use utoipa::ToSchema;

use super::super::error::Failure;

/// A whole answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = lm_studio::ChatResult)]
pub struct ChatResult {
    /// Id of the model that answered.
    pub(super) model_instance_id: String,
    pub(super) output: Vec<Item>,
    pub(super) stats: Stats,
    /// For requests that go on from here; absent where the answer is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_id: Option<String>,
}

/// What the model wrote, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = lm_studio::OutputItem)]
pub(super) enum Item {
    Message { content: String },
    Reasoning { content: String },
}

/// Figures about an answer.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(as = lm_studio::ChatStats)]
pub(super) struct Stats {
    pub(super) input_tokens: u32,
    pub(super) total_output_tokens: u32,
    pub(super) reasoning_output_tokens: u32,
    pub(super) tokens_per_second: f64,
    pub(super) time_to_first_token_seconds: f64,
    /// Only if the model was loaded for this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model_load_time_seconds: Option<f64>,
}

/// A step of a streamed answer; each is a server-sent event that is named as its type.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type")]
#[schema(as = lm_studio::ChatEvent)]
pub enum ChatEvent {
    #[serde(rename = "chat.start")]
    ChatStart { model_instance_id: String },
    /// Only if the model is not in memory.
    #[serde(rename = "model_load.start")]
    LoadStart { model_instance_id: String },
    /// 0 and then 1.
    #[serde(rename = "model_load.progress")]
    LoadProgress {
        model_instance_id: String,
        progress: f64,
    },
    #[serde(rename = "model_load.end")]
    LoadEnd {
        model_instance_id: String,
        load_time_seconds: f64,
    },
    #[serde(rename = "prompt_processing.start")]
    PromptStart,
    /// 0 to 1.
    #[serde(rename = "prompt_processing.progress")]
    PromptProgress { progress: f64 },
    #[serde(rename = "prompt_processing.end")]
    PromptEnd,
    #[serde(rename = "reasoning.start")]
    ReasoningStart,
    #[serde(rename = "reasoning.delta")]
    ReasoningDelta { content: String },
    #[serde(rename = "reasoning.end")]
    ReasoningEnd,
    #[serde(rename = "message.start")]
    MessageStart,
    #[serde(rename = "message.delta")]
    MessageDelta { content: String },
    #[serde(rename = "message.end")]
    MessageEnd,
    #[serde(rename = "error")]
    Error { error: Failure },
    #[serde(rename = "chat.end")]
    ChatEnd { result: ChatResult },
}

impl ChatEvent {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::ChatStart { .. } => "chat.start",
            Self::LoadStart { .. } => "model_load.start",
            Self::LoadProgress { .. } => "model_load.progress",
            Self::LoadEnd { .. } => "model_load.end",
            Self::PromptStart => "prompt_processing.start",
            Self::PromptProgress { .. } => "prompt_processing.progress",
            Self::PromptEnd => "prompt_processing.end",
            Self::ReasoningStart => "reasoning.start",
            Self::ReasoningDelta { .. } => "reasoning.delta",
            Self::ReasoningEnd => "reasoning.end",
            Self::MessageStart => "message.start",
            Self::MessageDelta { .. } => "message.delta",
            Self::MessageEnd => "message.end",
            Self::Error { .. } => "error",
            Self::ChatEnd { .. } => "chat.end",
        }
    }
}
