//! The body of `POST /v1/responses`, and the response it asks for before anything has been said.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    super::sampling::check_range,
    response::{
        ConversationReference, Reasoning, Response, ResponseObject, ServiceTier, Status, Text,
        Truncation,
    },
    text::{Format, TextOptions},
};
use crate::{Context, Error, sentinel::ANSWER_TOKENS};

/// Fields of the body that responses have of their own. Sampling parameters that chat completions
/// take are taken here too.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = responses::Request)]
pub struct Body {
    pub(super) model: String,
    pub(super) input: Option<Input>,
    /// Said before everything else, for this response only.
    pub(super) instructions: Option<String>,
    /// The response whose input and output come before this input.
    pub(super) previous_response_id: Option<String>,
    /// The conversation that comes before this input, and that input and output are added to.
    pub(super) conversation: Option<Conversation>,
    pub(super) stream: Option<bool>,
    /// Keeps the response for later requests; so it is unless this is false.
    pub(super) store: Option<bool>,
    /// `reasoning.encrypted_content` and `message.output_text.logprobs` are honoured.
    pub(super) include: Option<Vec<String>>,
    pub(super) max_output_tokens: Option<i64>,
    pub(super) max_tool_calls: Option<i64>,
    pub(super) metadata: Option<Map<String, Value>>,
    pub(super) tools: Option<Vec<Value>>,
    pub(super) tool_choice: Option<Value>,
    pub(super) parallel_tool_calls: Option<bool>,
    /// As chat completions have it.
    pub(super) logprobs: Option<bool>,
    pub(super) top_logprobs: Option<i64>,
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) text: Option<TextOptions>,
    pub(super) reasoning: Option<ReasoningWish>,
    pub(super) prompt_cache_key: Option<String>,
    pub(super) safety_identifier: Option<String>,
    pub(super) user: Option<String>,
    /// How long the model stays in memory after its last use, as Ollama has it; in LM Studio's
    /// words `ttl`, in seconds.
    #[serde(rename = "keep_alive")]
    _keep_alive: Option<Value>,
}

/// What is said: text of the user, or items.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be a string or an array of items")]
#[schema(as = responses::Input)]
pub(super) enum Input {
    Text(String),
    Items(Vec<Value>),
}

/// A conversation by its id.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be an id or an object with an `id`")]
#[schema(as = responses::ConversationOption)]
pub(super) enum Conversation {
    Id(String),
    Object { id: String },
}

/// Efforts are wishes: models that do not think are left as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = responses::ReasoningWish)]
pub(super) struct ReasoningWish {
    pub(super) effort: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) generate_summary: Option<String>,
}

impl Body {
    /// The response before anything has been said.
    pub(super) fn response(&self, context: &Context, top_logprobs: u8) -> Result<Response, Error> {
        let max_tool_calls = check_range("max_tool_calls", self.max_tool_calls, 0..)?;
        let max_output_tokens = ANSWER_TOKENS.read("max_output_tokens", self.max_output_tokens)?;
        let text = self.text.as_ref();
        let reasoning = self.reasoning.as_ref();
        Ok(Response {
            id: format!("resp_{}", context.id),
            object: ResponseObject::Response,
            created_at: context.created_unix,
            completed_at: None,
            status: Status::InProgress,
            background: false,
            error: None,
            incomplete_details: None,
            instructions: self.instructions.clone(),
            max_output_tokens: max_output_tokens.exact(),
            max_tool_calls: max_tool_calls.map(i64::cast_unsigned),
            metadata: self.metadata.clone().unwrap_or_default(),
            model: self.model.clone(),
            output: Vec::new(),
            parallel_tool_calls: self.parallel_tool_calls != Some(false),
            previous_response_id: self.previous_response_id.clone(),
            conversation: self.conversation.as_ref().map(
                |(Conversation::Id(id) | Conversation::Object { id })| ConversationReference {
                    id: id.clone(),
                },
            ),
            prompt_cache_key: self.prompt_cache_key.clone(),
            reasoning: Reasoning {
                effort: reasoning.and_then(|wish| wish.effort.clone()),
                summary: reasoning
                    .and_then(|wish| wish.summary.clone().or(wish.generate_summary.clone())),
            },
            safety_identifier: self.safety_identifier.clone(),
            service_tier: ServiceTier::Default,
            store: self.store != Some(false),
            temperature: self.temperature,
            text: Text {
                format: text.map_or(Ok(Format::Text), TextOptions::format)?,
                verbosity: text.and_then(|text| text.verbosity.clone()),
            },
            tool_choice: self.tool_choice.clone().unwrap_or_else(|| "auto".into()),
            tools: self.tools.clone().unwrap_or_default(),
            top_logprobs,
            top_p: self.top_p,
            truncation: Truncation::Disabled,
            usage: None,
            user: self.user.clone(),
        })
    }
}
