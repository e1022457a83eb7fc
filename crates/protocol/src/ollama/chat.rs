//! `POST /api/chat`.

use macmlx_inference::{ChatPrompt, KeepAlive, Message, Prompt, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    answer::{Delta, Encoder, End, Head, Metrics, Shape, ToolCall},
    generation::{self, Generating, Residency},
    messages,
};
use crate::{
    Body, Context, Described, Dialect, Endpoint, Error, Translation, Vocabulary, json,
    openai::{self, logprobs, tools},
    words::{self, Api, Renamed},
};

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct Chat;

/// The body, types checked.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::ChatRequest)]
pub struct Request {
    #[serde(flatten)]
    generation: generation::Fields,
    #[serde(flatten)]
    fields: Fields,
    /// As OpenAI has them.
    #[serde(flatten)]
    tools: tools::Fields,
    #[serde(skip)]
    #[schema(ignore)]
    renamed: Renamed,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::ChatFields)]
struct Fields {
    /// None: the model is loaded or unloaded.
    #[schema(value_type = Vec<messages::Turn>)]
    messages: Option<Vec<Value>>,
    /// A system prompt that is put before all turns.
    system: Option<Value>,
}

impl Described for Chat {
    const SUMMARY: &'static str = "Answer a conversation";

    type Body = Request;
    type Answer = Reply;
    type Event = Reply;
}

impl Endpoint for Chat {
    type Request = Request;
    type Encoder = Encoder<Self>;

    const DIALECT: Dialect = Dialect::Ollama;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::OllamaChat);

    fn parse(body: Body<'_>) -> Result<Request, Error> {
        let words::Body { value, renamed } = words::read(Self::VOCABULARY, body.bytes)?;
        renamed.clone().name(Request::read(&value, renamed))
    }

    fn keep_alive(request: &Request) -> Option<KeepAlive> {
        request.generation.keep_alive()
    }

    fn wants_stream(request: &Request) -> bool {
        request.generation.wants_stream()
    }

    fn translate(request: Request, context: Context) -> Result<Translation<Encoder<Self>>, Error> {
        request
            .renamed
            .clone()
            .translation(request.translate(&context))
    }
}

impl Request {
    fn read(body: &Value, renamed: Renamed) -> Result<Self, Error> {
        let generation = generation::Fields::read(body)?;
        Ok(Self {
            generation,
            fields: json::fields(body)?,
            tools: json::fields(body)?,
            renamed,
        })
    }

    fn translate(self, context: &Context) -> Result<Translation<Encoder<Chat>>, Error> {
        let Self {
            generation,
            fields,
            tools,
            renamed: _,
        } = self;
        let mut messages = messages::conversation(&fields.messages.unwrap_or_default())?;
        if messages.is_empty() {
            return Err(Error::invalid("messages", "messages is empty"));
        }
        messages.splice(..0, openai::messages::system(fields.system.as_ref())?);
        let tools = tools.into_tools()?;
        let encoder = Encoder::new(
            generation.model(),
            context,
            generation.wants_stream(),
            generation.wants_logprobs(),
            None,
        );
        let request = generation.into_request(Prompt::Chat(ChatPrompt {
            continue_final_message: messages.last().is_some_and(is_begun_answer),
            messages,
            tools: tools.definitions,
            tool_choice: tools.choice,
            single_tool_call: tools.is_one_call_at_most,
            ..ChatPrompt::default()
        }))?;
        Ok(Translation {
            requests: vec![request],
            encoder,
        })
    }
}

/// Returns whether the client's last turn begins the answer, which then goes on from there, as in
/// Ollama.
fn is_begun_answer(message: &Message) -> bool {
    message.role == Role::Assistant
        && message.tool_calls.is_empty()
        && !message.joined_text().is_empty()
}

impl Generating for Chat {
    fn residency(request: &Request) -> Option<Residency> {
        let has_turns = request
            .fields
            .messages
            .as_ref()
            .is_some_and(|turns| !turns.is_empty());
        (!has_turns).then(|| request.generation.residency())
    }
}

/// A frame of a stream or the whole reply.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::ChatReply)]
pub struct Reply {
    model: String,
    /// RFC 3339.
    created_at: String,
    message: Answer,
    done: bool,
    /// `stop`, `length`, `load` or `unload`, when it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    done_reason: Option<&'static str>,
    #[serde(flatten)]
    metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<logprobs::Token>)]
    logprobs: Vec<Value>,
}

/// What the assistant says.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::Answer)]
pub struct Answer {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
}

impl Shape for Chat {
    type Reply = Reply;

    fn reply(head: Head, delta: Delta, end: Option<End>) -> Reply {
        Reply {
            model: head.model,
            created_at: head.created_at,
            message: Answer {
                role: "assistant",
                content: delta.content,
                thinking: delta.thinking,
                tool_calls: delta.tool_calls,
            },
            done: end.is_some(),
            done_reason: end.as_ref().map(|end| end.done_reason),
            metrics: end.and_then(|end| end.metrics),
            logprobs: delta.logprobs,
        }
    }
}
