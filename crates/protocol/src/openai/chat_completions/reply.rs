//! What a client of chat completions is told, whole and in pieces.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::super::{logprobs::Token, nullable::Nullable, usage::Usage};

/// A whole answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatCompletion {
    pub(super) id: String,
    pub(super) object: &'static str,
    /// Seconds since the Unix epoch.
    pub(super) created: u64,
    /// Id of the model that answered, which may have been asked for by another name.
    pub(super) model: String,
    pub(super) system_fingerprint: String,
    pub(super) choices: Vec<Choice>,
    pub(super) usage: Option<Usage>,
}

/// One of the answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Choice {
    pub(super) index: u32,
    pub(super) message: Message,
    pub(super) logprobs: Option<Logprobs>,
    /// `stop`, `length`, `tool_calls` or, for functions of old, `function_call`.
    pub(super) finish_reason: &'static str,
}

/// What the model wrote.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Message {
    pub(super) role: &'static str,
    /// `null` for calls alone.
    pub(super) content: Option<String>,
    pub(super) refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<FunctionCall>,
}

/// A call the model made.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum ToolCall {
    Function {
        id: String,
        /// `function`.
        r#type: &'static str,
        function: FunctionCall,
    },
    Custom {
        id: String,
        /// `custom`.
        r#type: &'static str,
        custom: CustomCall,
    },
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FunctionCall {
    pub(super) name: String,
    /// JSON text, as the model wrote it.
    pub(super) arguments: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CustomCall {
    pub(super) name: String,
    pub(super) input: String,
}

/// Log probabilities of the content's tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Logprobs {
    #[schema(value_type = Vec<Token>)]
    pub(super) content: Vec<Value>,
    pub(super) refusal: Option<Vec<Token>>,
}

/// A piece of an answer, as a server-sent event. The last event is `[DONE]`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatCompletionChunk {
    pub(super) id: String,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) system_fingerprint: String,
    /// One, or none where the usage is told.
    pub(super) choices: Vec<ChunkChoice>,
    /// Only if asked for; `null` in all chunks but the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Usage>)]
    pub(super) usage: Option<Nullable<Usage>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChunkChoice {
    pub(super) index: u32,
    pub(super) delta: Delta,
    pub(super) logprobs: Option<Logprobs>,
    /// `null` in all pieces but a choice's last.
    pub(super) finish_reason: Option<&'static str>,
}

/// What is new in a choice. The first says the role.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<CallDelta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<FunctionDelta>,
}

/// What is new in a call. The first has id, type and name.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct CallDelta {
    pub(super) index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) r#type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function: Option<FunctionDelta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) custom: Option<CustomDelta>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FunctionDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) arguments: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CustomDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) input: String,
}
