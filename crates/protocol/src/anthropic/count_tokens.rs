//! `POST /v1/messages/count_tokens`.

use macmlx_inference::{TokenizeInput, TokenizeRequest};
use serde::Serialize;
use utoipa::ToSchema;

use super::messages::Request;
use crate::Error;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = anthropic::TokenCount)]
pub struct TokenCount {
    /// All of the prompt: system, tools, turns and what the chat template puts around them.
    pub input_tokens: u64,
}

/// The very prompt that `/v1/messages` would make of this body.
pub fn request(body: &[u8]) -> Result<TokenizeRequest, Error> {
    let mut request = Request::parse(body)?;
    let question = request.question()?;
    Ok(TokenizeRequest {
        model: request.model,
        input: TokenizeInput::Chat {
            prompt: question.chat,
            reasoning: question.reasoning,
        },
    })
}
