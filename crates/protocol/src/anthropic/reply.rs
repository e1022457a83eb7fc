//! What a client is sent: a whole message, or the events that build one.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::error::ErrorDetails;
use crate::{Frame, json};

/// One answer, whole.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = anthropic::Message)]
pub struct Message {
    pub id: String,
    /// Always `message`.
    pub r#type: &'static str,
    /// Always `assistant`.
    pub role: &'static str,
    /// Id of the model that answered.
    pub model: String,
    pub content: Vec<ContentBlock>,
    /// `null` only in `message_start`.
    pub stop_reason: Option<StopReason>,
    /// The stop sequence that ended the answer, if one did.
    pub stop_sequence: Option<String>,
    pub usage: Usage,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = anthropic::ContentBlock)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        /// A text that the client sends back unchanged.
        signature: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[schema(value_type = Object)]
        input: Map<String, Value>,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = anthropic::StopReason)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    MaxTokens,
    StopSequence,
    ToolUse,
    /// The model's context is full, though `max_tokens` is not reached.
    ModelContextWindowExceeded,
}

/// Tokens of a request. All input tokens are the sum of the three input counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[schema(as = anthropic::Usage)]
pub struct Usage {
    /// Computed for this request.
    pub input_tokens: u32,
    /// Always 0: keeping a prompt costs nothing here.
    pub cache_creation_input_tokens: u32,
    /// Tokens that the prefix cache had.
    pub cache_read_input_tokens: u32,
    pub output_tokens: u32,
    pub output_tokens_details: OutputTokensDetails,
}

/// Parts of `output_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[schema(as = anthropic::OutputTokensDetails)]
pub struct OutputTokensDetails {
    pub thinking_tokens: u32,
}

impl Usage {
    pub(super) fn of_prompt(prompt_tokens: u32, cached_tokens: u32) -> Self {
        Self {
            input_tokens: prompt_tokens.saturating_sub(cached_tokens),
            cache_read_input_tokens: cached_tokens,
            ..Self::default()
        }
    }

    pub(super) fn of(usage: &macmlx_inference::Usage) -> Self {
        Self {
            output_tokens: usage.completion_tokens,
            output_tokens_details: OutputTokensDetails {
                thinking_tokens: usage.reasoning_tokens,
            },
            ..Self::of_prompt(usage.prompt_tokens, usage.cached_tokens)
        }
    }
}

/// One event of a stream. Applied in order they build a [`Message`].
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = anthropic::StreamEvent)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        index: u32,
        content_block: ContentBlock,
    },
    ContentBlockDelta {
        index: u32,
        delta: Delta,
    },
    ContentBlockStop {
        index: u32,
    },
    Ping,
    MessageDelta {
        delta: MessageDelta,
        usage: Usage,
    },
    MessageStop,
    /// The stream failed and is over.
    Error {
        error: ErrorDetails,
    },
}

/// What is added to a block; its kind is that of the block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = anthropic::Delta)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    /// Joined, the pieces are the JSON text of `input`; none at all is `{}`.
    InputJsonDelta {
        partial_json: String,
    },
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = anthropic::MessageDelta)]
pub struct MessageDelta {
    pub stop_reason: StopReason,
    pub stop_sequence: Option<String>,
}

impl StreamEvent {
    pub(super) fn into_frame(self) -> Frame {
        Frame::Data {
            event: Some(self.name()),
            data: json::text(&self),
        }
    }

    /// SDKs tell events by the name of the frame, which is `type` once more.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::Ping => "ping",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop => "message_stop",
            Self::Error { .. } => "error",
        }
    }
}
