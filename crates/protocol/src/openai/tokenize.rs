//! `POST /v1/tokenize` and `/v1/detokenize`, as vLLM has them.

use macmlx_inference::{ChatPrompt, TokenizeInput, TokenizeRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{chat_completions::ChatCompletions, messages, reasoning, tools};
use crate::{Endpoint, Error, json, words};

/// The body of `/v1/tokenize`: `prompt`, or `messages` with what a chat completion takes beside
/// them.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::TokenizeRequest)]
pub struct TokenizeBody {
    model: String,
    prompt: Option<String>,
    messages: Option<Vec<Value>>,
    add_special_tokens: Option<bool>,
    #[expect(dead_code, reason = "for the document; the conversation reads it")]
    add_generation_prompt: Option<bool>,
    #[expect(dead_code, reason = "for the document; the conversation reads it")]
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
        (None, Some(_)) => {
            if fields.add_special_tokens == Some(true) {
                return Err(Error::unsupported(
                    "add_special_tokens",
                    "the chat template puts special tokens where they belong",
                ));
            }
            chat(body)?
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

/// What of a chat completion makes its prompt, beside tools and reasoning.
#[derive(Debug, Deserialize)]
struct Conversation {
    messages: Vec<Value>,
    system: Option<Value>,
    add_generation_prompt: Option<bool>,
    continue_final_message: Option<bool>,
}

/// The conversation of a chat completion, in any words that one may have.
fn chat(body: Value) -> Result<TokenizeInput, Error> {
    let words::Body { value, renamed } = words::read_object(ChatCompletions::VOCABULARY, body)?;
    renamed.name(read_chat(&value))
}

fn read_chat(body: &Value) -> Result<TokenizeInput, Error> {
    let fields: Conversation = json::fields(body)?;
    let tools = json::fields::<tools::Fields>(body)?.into_tools()?;
    let (reasoning, template_kwargs) = json::fields::<reasoning::Fields>(body)?.into_options()?;
    let mut conversation = messages::conversation(&fields.messages)?;
    let system = messages::system(fields.system.as_ref())?;
    conversation.messages.splice(..0, system);
    let continue_final_message =
        conversation.is_continued(fields.continue_final_message, fields.add_generation_prompt)?;
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
    #[expect(dead_code, reason = "for the document; the conversation reads it")]
    messages: Vec<Value>,
    #[expect(dead_code, reason = "for the document; the conversation reads it")]
    add_generation_prompt: Option<bool>,
    #[expect(dead_code, reason = "for the document; the conversation reads it")]
    continue_final_message: Option<bool>,
}

/// The model that is named, and the conversation whose prompt is wanted.
pub fn apply_template_request(body: &[u8]) -> Result<(Option<String>, TokenizeRequest), Error> {
    let body = json::object(body)?;
    let fields: ApplyTemplateBody = json::fields(&body)?;
    let request = TokenizeRequest {
        model: fields.model.clone().unwrap_or_default(),
        input: chat(body)?,
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
    use serde_json::json;

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
    fn a_conversation_may_be_in_any_words_that_chat_completions_take() {
        let turns = json!([{"role": "user", "content": "a"}]);
        for read in [
            (|body: &Value| Ok(request(body.to_string().as_bytes())?.input)) as fn(&Value) -> _,
            |body: &Value| Ok(apply_template_request(body.to_string().as_bytes())?.1.input),
        ] {
            let plain = json!({"model": "m", "messages": turns});
            let with = |name: &str, value: Value| -> Result<TokenizeInput, Error> {
                let mut body = plain.clone();
                body[name] = value;
                read(&body)
            };
            let TokenizeInput::Chat { prompt, reasoning } =
                with("instructions", "b".into()).unwrap()
            else {
                panic!("a conversation was sent");
            };
            assert_eq!(prompt.messages[0].joined_text(), "b");
            assert_eq!(reasoning.enabled, None);
            let TokenizeInput::Chat { reasoning, .. } = with("think", false.into()).unwrap() else {
                panic!("a conversation was sent");
            };
            assert_eq!(reasoning.enabled, Some(false));
            assert_eq!(with("temperature", 0.into()), read(&plain));
            for (name, value) in [
                ("chat_template", json!("{{ messages }}")),
                ("documents", json!([{"text": "x"}])),
                ("tool", json!([])),
            ] {
                let error = with(name, value).unwrap_err();
                assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
            }
        }
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
