//! `POST /v1/chat/completions`.

mod call;
mod encoder;
mod reply;

use macmlx_inference::{ChatPrompt, GenerateRequest, KeepAlive, Logprobs, Prompt};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use self::encoder::Wanted;
use super::{
    grammar, messages, prompt_limit, reasoning, sampling, sampling::check_range, stop, tools,
};
use crate::{
    Body, Context, Described, Dialect, Endpoint, Error, Translation, Vocabulary, json, keep_alive,
    words::{self, Api, Renamed},
};

pub use self::{
    encoder::Encoder,
    reply::{ChatCompletion, ChatCompletionChunk},
};

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct ChatCompletions;

/// The body, types checked. Other words of other dialects are names for these or refused by name;
/// what is left changes nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::ChatCompletionRequest)]
pub struct Request {
    #[serde(flatten)]
    fields: Fields,
    #[serde(flatten)]
    sampling: sampling::Sampling,
    #[serde(flatten)]
    prompt_limit: prompt_limit::Fields,
    #[serde(flatten)]
    stop: stop::Fields,
    #[serde(flatten)]
    length: stop::Length,
    #[serde(flatten)]
    reasoning: reasoning::Fields,
    #[serde(flatten)]
    tools: tools::Fields,
    #[serde(flatten)]
    grammar: grammar::Fields,
    #[serde(flatten)]
    keep_alive: keep_alive::Fields,
    #[serde(skip)]
    #[schema(ignore)]
    renamed: Renamed,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::ChatCompletion)]
struct Fields {
    model: String,
    /// Turns of `system`, `developer`, `user`, `assistant`, `tool` and `function`.
    messages: Vec<Value>,
    /// Said before all turns: a string or text parts.
    system: Option<Value>,
    /// Choices, 1 to 128.
    n: Option<i64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    logprobs: Option<bool>,
    top_logprobs: Option<i64>,
    continue_final_message: Option<bool>,
    add_generation_prompt: Option<bool>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::StreamOptions)]
pub(super) struct StreamOptions {
    include_usage: Option<bool>,
}

impl StreamOptions {
    pub(super) fn wants_usage(options: Option<&Self>) -> bool {
        options.is_some_and(|options| options.include_usage == Some(true))
    }
}

impl Described for ChatCompletions {
    const SUMMARY: &'static str = "Answer a conversation";

    type Body = Request;
    type Answer = ChatCompletion;
    type Event = ChatCompletionChunk;
}

impl Endpoint for ChatCompletions {
    type Request = Request;
    type Encoder = Encoder;

    const DIALECT: Dialect = Dialect::OpenAi;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::Chat);

    fn parse(body: Body<'_>) -> Result<Request, Error> {
        let words::Body { value, renamed } = words::read(Self::VOCABULARY, body.bytes)?;
        renamed.clone().name(Request::read(&value, renamed))
    }

    fn keep_alive(request: &Request) -> Option<KeepAlive> {
        request.keep_alive.wish()
    }

    fn wants_stream(request: &Request) -> bool {
        request.fields.stream == Some(true)
    }

    fn translate(request: Request, context: Context) -> Result<Translation<Encoder>, Error> {
        request
            .renamed
            .clone()
            .translation(request.translate(context))
    }
}

impl Request {
    fn read(body: &Value, renamed: Renamed) -> Result<Self, Error> {
        Ok(Self {
            fields: json::fields(body)?,
            sampling: sampling::Sampling::read(body)?,
            prompt_limit: json::fields(body)?,
            stop: json::fields(body)?,
            length: json::fields(body)?,
            reasoning: json::fields(body)?,
            tools: json::fields(body)?,
            grammar: grammar::Fields::read(body)?,
            keep_alive: keep_alive::Fields::read(body)?,
            renamed,
        })
    }

    fn translate(self, context: Context) -> Result<Translation<Encoder>, Error> {
        let request = self;
        let wants_stream = ChatCompletions::wants_stream(&request);
        let fields = request.fields;
        let choices = check_range("n", fields.n, 1..=128)?.unwrap_or(1) as u32;
        let wants_logprobs = fields.logprobs == Some(true);
        let top_logprobs = check_range("top_logprobs", fields.top_logprobs, 0..=20)?.unwrap_or(0);
        if top_logprobs > 0 && !wants_logprobs {
            return Err(Error::invalid(
                "top_logprobs",
                "top_logprobs needs `logprobs` to be true",
            ));
        }
        let tools = request.tools.into_tools()?;
        let wanted = Wanted {
            stream: wants_stream,
            usage: StreamOptions::wants_usage(fields.stream_options.as_ref()),
            logprobs: wants_logprobs,
            calls: tools.calls,
        };
        let encoder = Encoder::new(context, wanted, fields.model.clone(), choices);
        let (reasoning, template_kwargs) = request.reasoning.into_options()?;
        let mut conversation = messages::conversation(&fields.messages)?;
        conversation
            .messages
            .splice(..0, messages::system(fields.system.as_ref())?);
        let continue_final_message = conversation
            .is_continued(fields.continue_final_message, fields.add_generation_prompt)?;
        // llama.cpp's word for reading the prompt alone; others have no such count.
        let least = i64::from(
            !request
                .renamed
                .is_from("max_completion_tokens", "n_predict"),
        );
        let request = GenerateRequest {
            model: fields.model,
            prompt: Prompt::Chat(ChatPrompt {
                messages: conversation.messages,
                tools: tools.definitions,
                tool_choice: tools.choice,
                single_tool_call: tools.is_one_call_at_most,
                template_kwargs,
                continue_final_message,
            }),
            prompt_limit: request.prompt_limit.limit()?,
            sampling: request.sampling.into_params()?,
            stop: request.stop.into_conditions(request.length.limit(least)?)?,
            logprobs: wants_logprobs.then_some(Logprobs {
                top: top_logprobs as u8,
                prompt: false,
            }),
            choices,
            reasoning,
            grammar: request.grammar.into_grammar()?,
        };
        Ok(Translation {
            requests: vec![request],
            encoder,
        })
    }
}
