//! The response object: the answer to a request that is not streamed, and part of many frames of
//! one that is.

use macmlx_inference::Usage as Counts;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::text::Format;

/// A response in any state.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = responses::Response)]
pub struct Response {
    pub id: String,
    pub object: ResponseObject,
    /// Seconds since the Unix epoch.
    pub created_at: u64,
    /// Seconds since the Unix epoch; `null` until the response is completed.
    pub completed_at: Option<u64>,
    pub status: Status,
    /// Always false: responses are made while the client waits.
    pub background: bool,
    pub error: Option<Failure>,
    pub incomplete_details: Option<IncompleteDetails>,
    pub instructions: Option<String>,
    pub max_output_tokens: Option<u64>,
    pub max_tool_calls: Option<u64>,
    pub metadata: Map<String, Value>,
    /// Id of the model that answers.
    pub model: String,
    pub output: Vec<OutputItem>,
    pub parallel_tool_calls: bool,
    pub previous_response_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationReference>,
    pub prompt_cache_key: Option<String>,
    pub reasoning: Reasoning,
    pub safety_identifier: Option<String>,
    pub service_tier: ServiceTier,
    pub store: bool,
    /// As it was asked for; `null`: the model's own.
    pub temperature: Option<f64>,
    pub text: Text,
    pub tool_choice: Value,
    pub tools: Vec<Value>,
    pub top_logprobs: u8,
    /// As it was asked for; `null`: the model's own.
    pub top_p: Option<f64>,
    pub truncation: Truncation,
    /// `null` until all tokens are counted.
    pub usage: Option<Usage>,
    pub user: Option<String>,
}

/// What the object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = responses::ResponseObject)]
pub enum ResponseObject {
    Response,
}

/// How far a response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = responses::Status)]
pub enum Status {
    InProgress,
    Completed,
    Incomplete,
    Failed,
}

/// Why a response failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = responses::Failure)]
pub struct Failure {
    pub code: String,
    pub message: String,
}

/// Why a response is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = responses::IncompleteDetails)]
pub struct IncompleteDetails {
    pub reason: IncompleteReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = responses::IncompleteReason)]
pub enum IncompleteReason {
    /// `max_output_tokens` or the end of the model's context.
    MaxOutputTokens,
}

/// The conversation a response belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = responses::ConversationReference)]
pub struct ConversationReference {
    pub id: String,
}

/// How much thinking was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[schema(as = responses::Reasoning)]
pub struct Reasoning {
    pub effort: Option<String>,
    pub summary: Option<String>,
}

/// There is one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = responses::ServiceTier)]
pub enum ServiceTier {
    Default,
}

/// What text is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = responses::Text)]
pub struct Text {
    pub format: Format,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
}

/// What happens to a prompt that is too long: it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = responses::Truncation)]
pub enum Truncation {
    Disabled,
}

/// One thing the model said, thought or called.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = responses::OutputItem)]
pub enum OutputItem {
    Message {
        id: String,
        status: ItemStatus,
        role: Assistant,
        content: Vec<OutputText>,
    },
    /// Thinking. The whole of it is the summary, which is what clients show.
    Reasoning {
        id: String,
        status: ItemStatus,
        summary: Vec<SummaryText>,
        /// Sent back by clients that store nothing here.
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<String>,
    },
    FunctionCall {
        id: String,
        status: ItemStatus,
        call_id: String,
        name: String,
        /// Group the function was declared in.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// JSON text.
        arguments: String,
    },
    /// A call of a tool that takes free text.
    CustomToolCall {
        id: String,
        status: ItemStatus,
        call_id: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        input: String,
    },
    /// The client is to look for tools.
    ToolSearchCall {
        id: String,
        status: ItemStatus,
        call_id: String,
        execution: Execution,
        /// An object, unless the model made a mistake.
        arguments: Value,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = responses::ItemStatus)]
pub enum ItemStatus {
    InProgress,
    Completed,
    Incomplete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = responses::Assistant)]
pub enum Assistant {
    Assistant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = responses::Execution)]
pub enum Execution {
    Client,
}

/// Text of a message.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = responses::OutputText)]
pub struct OutputText {
    r#type: OutputTextType,
    pub text: String,
    /// Always empty.
    pub annotations: Vec<Value>,
    /// Log probabilities of the tokens, when asked for.
    pub logprobs: Vec<Value>,
}

impl OutputText {
    pub(super) fn new(text: String, logprobs: Vec<Value>) -> Self {
        Self {
            r#type: OutputTextType::OutputText,
            text,
            annotations: Vec::new(),
            logprobs,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = responses::OutputTextType)]
enum OutputTextType {
    OutputText,
}

/// Text of a thought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = responses::SummaryText)]
pub struct SummaryText {
    r#type: SummaryTextType,
    pub text: String,
}

impl SummaryText {
    pub(super) fn new(text: String) -> Self {
        Self {
            r#type: SummaryTextType::SummaryText,
            text,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = responses::SummaryTextType)]
enum SummaryTextType {
    SummaryText,
}

/// Tokens of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = responses::Usage)]
pub struct Usage {
    pub input_tokens: u32,
    pub input_tokens_details: InputTokensDetails,
    pub output_tokens: u32,
    pub output_tokens_details: OutputTokensDetails,
    pub total_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = responses::InputTokensDetails)]
pub struct InputTokensDetails {
    /// Taken from the prefix cache.
    pub cached_tokens: u32,
    /// Nobody pays for writing to the cache: always 0.
    pub cache_write_tokens: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = responses::OutputTokensDetails)]
pub struct OutputTokensDetails {
    pub reasoning_tokens: u32,
}

impl From<&Counts> for Usage {
    fn from(counts: &Counts) -> Self {
        Self {
            input_tokens: counts.prompt_tokens,
            input_tokens_details: InputTokensDetails {
                cached_tokens: counts.cached_tokens,
                cache_write_tokens: 0,
            },
            output_tokens: counts.completion_tokens,
            output_tokens_details: OutputTokensDetails {
                reasoning_tokens: counts.reasoning_tokens,
            },
            total_tokens: u64::from(counts.prompt_tokens) + u64::from(counts.completion_tokens),
        }
    }
}
