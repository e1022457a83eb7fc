//! What an answer says while it is written.

use macmlx_store::conversations::{AnswerTimings, CallState, Ending, TokenCounts};
use serde::Serialize;
use utoipa::ToSchema;

use crate::conversations::Message;

/// One step of an answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ChatEvent {
    /// A message was stored: the question, or an answer in its last form.
    Message {
        message: Box<Message>,
    },
    /// The model begins a message; one that calls tools begins another when they are done.
    AssistantStarted {
        id: String,
        model: String,
    },
    /// The model has to be loaded first.
    Loading {
        model: String,
    },
    /// Tokens of the prompt that are computed.
    Prefill {
        processed: u32,
        total: u32,
        /// Tokens of the prompt that the prefix cache had.
        cached: u32,
    },
    Reasoning {
        text: String,
    },
    Text {
        text: String,
    },
    /// The model begins to write a tool call.
    ToolCall {
        call: ChatToolCall,
    },
    /// The next JSON text of the call's arguments.
    ToolArguments {
        id: String,
        text: String,
    },
    ToolCallEnd {
        id: String,
    },
    /// The call waits for a decision.
    ToolApproval {
        id: String,
        name: String,
        server: String,
        /// JSON text of the arguments object.
        arguments: String,
    },
    ToolStarted {
        id: String,
    },
    /// What the model is told.
    ToolResult {
        id: String,
        state: CallState,
        content: String,
        duration_ms: u64,
    },
    /// The conversation got a title.
    Title {
        title: String,
    },
    /// The answer is whole.
    Finished {
        reason: Ending,
        usage: TokenCounts,
        timings: AnswerTimings,
    },
    /// The answer broke off, or there is none.
    Error {
        code: String,
        message: String,
    },
}

/// A tool that the model calls.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ChatToolCall {
    pub(super) id: String,
    /// The name that the model knows it by.
    pub(super) name: String,
    /// The MCP server that offers it.
    #[schema(required)]
    pub(super) server: Option<String>,
    /// Text for people.
    #[schema(required)]
    pub(super) title: Option<String>,
}
