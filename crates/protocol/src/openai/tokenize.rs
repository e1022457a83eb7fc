//! `POST /v1/tokenize` and `/v1/detokenize`, as vLLM has them.

use macmlx_inference::{ChatPrompt, TokenizeInput, TokenizeRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{messages, reasoning, tools};
use crate::{Error, json};

/// The body of `/v1/tokenize`: `prompt`, or `messages` with what a chat completion takes beside
/// them.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::TokenizeRequest)]
pub struct TokenizeBody {
    model: String,
    prompt: Option<String>,
    messages: Option<Vec<Value>>,
    add_special_tokens: Option<bool>,
    add_generation_prompt: Option<bool>,
    continue_final_message: Option<bool>,
    return_token_strs: Option<bool>,
}

/// Text or a conversation to be turned into tokens.
pub fn request(body: &[u8]) -> Result<TokenizeRequest, Error> {
    let body = json::object(body)?;
    let fields: TokenizeBody = json::fields(&body)?;
    if fields.return_token_strs == Some(true) {
        return Err(Error::unsupported(
            "return_token_strs",
            "use /v1/detokenize for the text of tokens",
        ));
    }
    let input = match (fields.prompt, fields.messages) {
        (Some(text), None) => TokenizeInput::Text {
            text,
            add_special_tokens: fields.add_special_tokens.unwrap_or(true),
        },
        (None, Some(turns)) => {
            if fields.add_special_tokens == Some(true) {
                return Err(Error::unsupported(
                    "add_special_tokens",
                    "the chat template puts special tokens where they belong",
                ));
            }
            let continued = (fields.continue_final_message, fields.add_generation_prompt);
            chat(&body, &turns, continued)?
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(Error::invalid(
                "prompt",
                "either prompt or messages must be there, and not both",
            ));
        }
    };
    Ok(TokenizeRequest {
        model: fields.model,
        input,
    })
}

/// A conversation with what a chat completion takes beside it. `continued` holds
/// `continue_final_message` and `add_generation_prompt`.
fn chat(
    body: &Value,
    turns: &[Value],
    continued: (Option<bool>, Option<bool>),
) -> Result<TokenizeInput, Error> {
    let tools = json::fields::<tools::Fields>(body)?.into_tools()?;
    let (reasoning, template_kwargs) = json::fields::<reasoning::Fields>(body)?.into_options()?;
    let conversation = messages::conversation(turns)?;
    let continue_final_message = conversation.is_continued(continued.0, continued.1)?;
    Ok(TokenizeInput::Chat {
        prompt: ChatPrompt {
            messages: conversation.messages,
            tools: tools.definitions,
            tool_choice: tools.choice,
            single_tool_call: tools.is_one_call_at_most,
            template_kwargs,
            continue_final_message,
        },
        reasoning,
    })
}

/// The body of `/apply-template`, as llama.cpp has it: a conversation with what a chat completion
/// takes beside it.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::ApplyTemplateRequest)]
pub struct ApplyTemplateBody {
    /// None: the default model.
    model: Option<String>,
    messages: Vec<Value>,
    add_generation_prompt: Option<bool>,
    continue_final_message: Option<bool>,
}

/// The model that is named, and the conversation whose prompt is wanted.
pub fn apply_template_request(body: &[u8]) -> Result<(Option<String>, TokenizeRequest), Error> {
    let body = json::object(body)?;
    let fields: ApplyTemplateBody = json::fields(&body)?;
    let continued = (fields.continue_final_message, fields.add_generation_prompt);
    let request = TokenizeRequest {
        model: fields.model.clone().unwrap_or_default(),
        input: chat(&body, &fields.messages, continued)?,
    };
    Ok((fields.model, request))
}

/// The tokens found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = openai::Tokenized)]
pub struct Tokenized {
    tokens: Vec<u32>,
    count: usize,
    /// Context length of the model, if known.
    max_model_len: Option<u32>,
}

/// The reply of `/v1/tokenize`.
pub fn reply(tokens: Vec<u32>, max_model_len: Option<u32>) -> Value {
    json::value(&Tokenized {
        count: tokens.len(),
        tokens,
        max_model_len,
    })
}

/// Tokens to be turned into text.
#[derive(Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = openai::DetokenizeRequest)]
pub struct DetokenizeRequest {
    pub model: String,
    pub tokens: Vec<u32>,
}

/// Reads the body of `/v1/detokenize`.
pub fn detokenize_request(body: &[u8]) -> Result<DetokenizeRequest, Error> {
    json::fields(&json::object(body)?)
}

/// The text found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = openai::Detokenized)]
pub struct Detokenized {
    prompt: String,
}

/// The reply of `/v1/detokenize`.
pub fn detokenize_reply(text: String) -> Value {
    json::value(&Detokenized { prompt: text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_with_special_tokens_unless_told_otherwise() {
        let plain = request(br#"{"model": "m", "prompt": "a"}"#).unwrap();
        assert_eq!(
            plain.input,
            TokenizeInput::Text {
                text: "a".into(),
                add_special_tokens: true
            }
        );
        let bare =
            request(br#"{"model": "m", "prompt": "a", "add_special_tokens": false}"#).unwrap();
        assert!(matches!(
            bare.input,
            TokenizeInput::Text {
                add_special_tokens: false,
                ..
            }
        ));
    }

    #[test]
    fn a_conversation_is_read_as_chat_completions_read_it() {
        let body = br#"{"model": "m", "messages": [{"role": "user", "content": "a"}]}"#;
        let TokenizeInput::Chat { prompt: chat, .. } = request(body).unwrap().input else {
            panic!("a conversation was sent");
        };
        assert_eq!(chat.messages[0].joined_text(), "a");
    }

    #[test]
    fn one_of_the_two_must_be_there() {
        assert!(request(br#"{"model": "m"}"#).is_err());
        assert!(request(br#"{"prompt": "a"}"#).is_err());
        let both = br#"{"model": "m", "prompt": "a", "messages": []}"#;
        assert!(request(both).is_err());
        assert!(detokenize_request(br#"{"model": "m", "tokens": [-1]}"#).is_err());
    }
}
