//! Token counts in OpenAI's shape.

use macmlx_inference as inference;
use serde::Serialize;
use utoipa::ToSchema;

/// Tokens of one request, all choices together. What a server of text never counts is zero.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Usage {
    prompt_tokens: u32,
    completion_tokens: u32,
    total_tokens: u64,
    prompt_tokens_details: PromptTokensDetails,
    completion_tokens_details: CompletionTokensDetails,
}

/// Details of the prompt's tokens.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct PromptTokensDetails {
    /// Tokens that the prefix cache had.
    cached_tokens: u32,
    audio_tokens: u32,
}

/// Details of the completion's tokens.
#[expect(clippy::struct_field_names, reason = "the names are OpenAI's")]
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct CompletionTokensDetails {
    /// Tokens inside reasoning blocks.
    reasoning_tokens: u32,
    audio_tokens: u32,
    accepted_prediction_tokens: u32,
    rejected_prediction_tokens: u32,
}

/// Tokens of one request that nothing is generated for.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = openai::PromptUsage)]
pub(super) struct PromptUsage {
    prompt_tokens: u32,
    total_tokens: u32,
}

impl PromptUsage {
    pub(super) fn new(prompt_tokens: u32) -> Self {
        Self {
            prompt_tokens,
            total_tokens: prompt_tokens,
        }
    }
}

impl From<&inference::Usage> for Usage {
    fn from(usage: &inference::Usage) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: u64::from(usage.prompt_tokens) + u64::from(usage.completion_tokens),
            prompt_tokens_details: PromptTokensDetails {
                cached_tokens: usage.cached_tokens,
                audio_tokens: 0,
            },
            completion_tokens_details: CompletionTokensDetails {
                reasoning_tokens: usage.reasoning_tokens,
                audio_tokens: 0,
                accepted_prediction_tokens: 0,
                rejected_prediction_tokens: 0,
            },
        }
    }
}
