//! `POST /api/generate`.

use macmlx_inference::{ChatPrompt, ContentPart, InfillPrompt, KeepAlive, Message, Prompt, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    answer::{Delta, Encoder, End, Head, Metrics, Shape, ToolCall},
    context,
    generation::{self, Generating, Residency},
    messages, refuse_if,
};
use crate::{
    Body, Context, Described, Dialect, Endpoint, Error, Translation, Vocabulary, json,
    openai::logprobs,
    words::{self, Api, Renamed},
};

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct Generate;

/// The body, types checked.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::GenerateRequest)]
pub struct Request {
    #[serde(flatten)]
    generation: generation::Fields,
    #[serde(flatten)]
    fields: Fields,
    #[serde(skip)]
    #[schema(ignore)]
    renamed: Renamed,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::GenerateFields)]
struct Fields {
    /// None, and no suffix either: the model is loaded or unloaded.
    prompt: Option<String>,
    system: Option<String>,
    /// Base64.
    images: Option<Vec<String>>,
    /// The prompt is completed as it stands.
    raw: Option<bool>,
    /// The context of an earlier reply.
    context: Option<Vec<i64>>,
    /// Refused unless empty.
    template: Option<String>,
    /// Text after the prompt: the model fills in what is between them.
    suffix: Option<String>,
}

impl Described for Generate {
    const SUMMARY: &'static str = "Continue a prompt";

    type Body = Request;
    type Answer = Reply;
    type Event = Reply;
}

impl Endpoint for Generate {
    type Request = Request;
    type Encoder = Encoder<Self>;

    const DIALECT: Dialect = Dialect::Ollama;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::OllamaGenerate);

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
        let fields: Fields = json::fields(body)?;
        refuse_if(
            is_given(fields.template.as_ref()),
            "template",
            "the model's own chat template is used; `raw` takes a prompt as it stands",
        )?;
        Ok(Self {
            generation,
            fields,
            renamed,
        })
    }

    fn translate(self, context: &Context) -> Result<Translation<Encoder<Generate>>, Error> {
        let Self {
            generation,
            fields,
            renamed: _,
        } = self;
        let (prompt, conversation) = if is_given(fields.suffix.as_ref()) {
            refuse_without_turns(
                &generation,
                &fields,
                "a text that is filled in has no turns",
            )?;
            let gap = InfillPrompt {
                prefix: fields.prompt.unwrap_or_default(),
                suffix: fields.suffix.unwrap_or_default(),
                param: "suffix".into(),
                ..InfillPrompt::default()
            };
            (Prompt::Infill(gap), None)
        } else if fields.raw == Some(true) {
            let reason = "a raw prompt is completed as it stands";
            refuse_without_turns(&generation, &fields, reason)?;
            (Prompt::Text(fields.prompt.unwrap_or_default()), None)
        } else {
            let messages = conversation(fields)?;
            let prompt = Prompt::Chat(ChatPrompt {
                messages: messages.clone(),
                ..ChatPrompt::default()
            });
            (prompt, Some(messages))
        };
        let encoder = Encoder::new(
            generation.model(),
            context,
            generation.wants_stream(),
            generation.wants_logprobs(),
            conversation,
        );
        Ok(Translation {
            requests: vec![generation.into_request(prompt)?],
            encoder,
        })
    }
}

/// A prompt that is no conversation leaves no place for these.
fn refuse_without_turns(
    generation: &generation::Fields,
    fields: &Fields,
    reason: &'static str,
) -> Result<(), Error> {
    refuse_if(is_given(fields.system.as_ref()), "system", reason)?;
    refuse_if(!is_empty(fields.context.as_ref()), "context", reason)?;
    refuse_if(!is_empty(fields.images.as_ref()), "images", reason)?;
    refuse_if(generation.wants_thinking(), "think", reason)
}

/// The turns so far, the system's if it is new, and the prompt.
fn conversation(fields: Fields) -> Result<Vec<Message>, Error> {
    let mut turns = context::decode(&fields.context.unwrap_or_default())?;
    if let Some(system) = fields.system.filter(|system| !system.is_empty()) {
        let system = Message::text(Role::System, system);
        // Clients send it with each prompt.
        if !turns.contains(&system) {
            turns.push(system);
        }
    }
    let mut content = messages::images(fields.images.unwrap_or_default(), "images");
    content.push(ContentPart::Text(fields.prompt.unwrap_or_default()));
    turns.push(Message {
        content,
        ..Message::text(Role::User, "")
    });
    Ok(turns)
}

fn is_given(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

fn is_empty<T>(items: Option<&Vec<T>>) -> bool {
    items.is_none_or(Vec::is_empty)
}

impl Generating for Generate {
    fn residency(request: &Request) -> Option<Residency> {
        let Fields { prompt, suffix, .. } = &request.fields;
        let has_text = is_given(prompt.as_ref()) || is_given(suffix.as_ref());
        (!has_text).then(|| request.generation.residency())
    }
}

/// A frame of a stream or the whole reply.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ollama::GenerateReply)]
pub struct Reply {
    model: String,
    /// RFC 3339.
    created_at: String,
    response: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    done: bool,
    /// `stop`, `length`, `load` or `unload`, when it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    done_reason: Option<&'static str>,
    /// The conversation, to be handed back with the next prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Vec<i32>>,
    #[serde(flatten)]
    metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<logprobs::Token>)]
    logprobs: Vec<Value>,
}

impl Shape for Generate {
    type Reply = Reply;

    fn reply(head: Head, delta: Delta, end: Option<End>) -> Reply {
        let (done_reason, metrics, context) = match end {
            Some(end) => (Some(end.done_reason), end.metrics, end.context),
            None => (None, None, None),
        };
        Reply {
            model: head.model,
            created_at: head.created_at,
            response: delta.content,
            thinking: delta.thinking,
            done: done_reason.is_some(),
            done_reason,
            context,
            metrics,
            tool_calls: delta.tool_calls,
            logprobs: delta.logprobs,
        }
    }
}
