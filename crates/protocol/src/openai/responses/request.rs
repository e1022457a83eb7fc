//! The body of `POST /v1/responses`, what it refers to, and what the backend is to do.

use std::collections::HashMap;

use macmlx_inference::{
    ChatPrompt, GenerateRequest, Logprobs, Prompt, ReasoningOptions, StopConditions, TokenizeInput,
    TokenizeRequest,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{
    super::{reasoning, sampling, sampling::checked, stop},
    encoder::{Encoder, Options},
    input::{self, Turns},
    items, refused,
    response::{
        ConversationReference, Object, Reasoning, Response, ServiceTier, Status, Text, TextFormat,
        Truncation,
    },
    tools::{Offer, Toolbox},
};
use crate::{Context, Error, Translation, json};

/// The body, types checked.
#[derive(Debug)]
pub struct Request {
    body: Body,
    sampling: sampling::Fields,
    stop: stop::Fields,
    reasoning: reasoning::Fields,
}

/// Fields of the body that responses have of their own. Sampling parameters that chat completions
/// take are taken here too.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = responses::Request)]
pub struct Body {
    model: String,
    input: Option<Input>,
    /// Said before everything else, for this response only.
    instructions: Option<String>,
    /// The response whose input and output come before this input.
    previous_response_id: Option<String>,
    /// The conversation that comes before this input, and that input and output are added to.
    conversation: Option<Conversation>,
    stream: Option<bool>,
    /// Keeps the response for later requests; so it is unless this is false.
    store: Option<bool>,
    /// `reasoning.encrypted_content` and `message.output_text.logprobs` are honoured.
    include: Option<Vec<String>>,
    max_output_tokens: Option<i64>,
    max_tool_calls: Option<i64>,
    metadata: Option<Map<String, Value>>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    top_logprobs: Option<i64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    text: Option<TextOptions>,
    reasoning: Option<ReasoningWish>,
    prompt_cache_key: Option<String>,
    safety_identifier: Option<String>,
    user: Option<String>,
}

/// What is said: text of the user, or items.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be a string or an array of items")]
#[schema(as = responses::Input)]
enum Input {
    Text(String),
    Items(Vec<Value>),
}

/// A conversation by its id.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be an id or an object with an `id`")]
#[schema(as = responses::ConversationOption)]
enum Conversation {
    Id(String),
    Object { id: String },
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = responses::TextOptions)]
struct TextOptions {
    verbosity: Option<String>,
}

/// Efforts are wishes: models that do not think are left as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = responses::ReasoningWish)]
struct ReasoningWish {
    effort: Option<String>,
    summary: Option<String>,
    generate_summary: Option<String>,
}

/// What comes before a request's own input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows<'a> {
    Nothing,
    Response(&'a str),
    Conversation(&'a str),
}

/// What earlier requests left behind for this one.
#[derive(Debug, Default)]
pub struct Past {
    /// Items that come before the input, oldest first.
    pub items: Vec<Value>,
    /// Items the input refers to, by id. Those in `items` need not be here.
    pub referenced: HashMap<String, Value>,
}

impl Request {
    pub(super) fn parse(body: &[u8]) -> Result<Self, Error> {
        let body = json::object(body)?;
        refused::check(&body)?;
        let request = Self {
            body: json::fields(&body)?,
            sampling: json::fields(&body)?,
            stop: json::fields(&body)?,
            reasoning: json::fields(&body)?,
        };
        if request.body.previous_response_id.is_some() && request.body.conversation.is_some() {
            return Err(Error::invalid(
                "previous_response_id",
                "previous_response_id and conversation exclude each other",
            ));
        }
        Ok(request)
    }

    pub fn wants_stream(&self) -> bool {
        self.body.stream == Some(true)
    }

    /// Whether the response is to be kept.
    pub fn wants_store(&self) -> bool {
        self.body.store != Some(false)
    }

    /// What must be in [`Past::items`].
    pub fn follows(&self) -> Follows<'_> {
        match (&self.body.previous_response_id, &self.body.conversation) {
            (Some(id), _) => Follows::Response(id),
            (None, Some(Conversation::Id(id) | Conversation::Object { id })) => {
                Follows::Conversation(id)
            }
            (None, None) => Follows::Nothing,
        }
    }

    /// Ids of items the input refers to.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        let items = match &self.body.input {
            Some(Input::Items(items)) => items.as_slice(),
            _ => &[],
        };
        items.iter().filter_map(reference)
    }

    /// The past where nothing is kept.
    pub(super) fn past_of_nothing(&self) -> Result<Past, Error> {
        match self.follows() {
            Follows::Nothing => Ok(Past::default()),
            follows => Err(follows.not_kept()),
        }
    }

    /// What the backend is to do, and the encoder for what it will say. `past` holds what
    /// [`Self::follows`] and [`Self::references`] asked for.
    pub fn translate(self, past: &Past, context: Context) -> Result<Translation<Encoder>, Error> {
        let wants_stream = self.wants_stream();
        let include = self.body.include.as_deref().unwrap_or_default();
        let includes = |what: &str| include.iter().any(|included| included == what);
        let top_logprobs =
            checked("top_logprobs", self.body.top_logprobs, 0..=20)?.unwrap_or(0) as u8;
        let wants_logprobs = top_logprobs > 0 || includes("message.output_text.logprobs");
        let wants_sealed_reasoning = includes("reasoning.encrypted_content");
        let max_tokens = checked("max_output_tokens", self.body.max_output_tokens, 1..)?;
        let mut stop = self.stop.into_conditions(1, None)?;
        limit(&mut stop, max_tokens)?;
        let response = self.body.response(&context, top_logprobs)?;
        let conversed = converse(self.body, past, self.reasoning, &context.id)?;
        let request = GenerateRequest {
            model: response.model.clone(),
            prompt: Prompt::Chat(conversed.prompt),
            sampling: self.sampling.into_params()?,
            stop,
            logprobs: wants_logprobs.then_some(Logprobs {
                top: top_logprobs,
                prompt: false,
            }),
            choices: 1,
            reasoning: conversed.reasoning,
        };
        let options = Options {
            id: context.id,
            wants_stream,
            wants_logprobs,
            wants_sealed_reasoning,
            callees: conversed.callees,
            input: conversed.input,
        };
        Ok(Translation {
            requests: vec![request],
            encoder: Encoder::new(options, response),
        })
    }

    /// What `POST /v1/responses/input_tokens` asks: the prompt, to be counted.
    pub fn count(self, past: &Past) -> Result<TokenizeRequest, Error> {
        let model = self.body.model.clone();
        let conversed = converse(self.body, past, self.reasoning, "")?;
        Ok(TokenizeRequest {
            model,
            input: TokenizeInput::Chat {
                prompt: conversed.prompt,
                reasoning: conversed.reasoning,
            },
        })
    }
}

/// The answer to `POST /v1/responses/input_tokens`.
pub fn count_reply(tokens: usize) -> Value {
    json!({"object": "response.input_tokens", "input_tokens": tokens})
}

impl Follows<'_> {
    /// The error when it is not there.
    pub fn not_kept(self) -> Error {
        let (kind, id, param) = match self {
            Self::Nothing => ("response", "", None),
            Self::Response(id) => ("response", id, Some("previous_response_id")),
            Self::Conversation(id) => ("conversation", id, Some("conversation")),
        };
        Error::NotKept {
            kind,
            id: id.to_owned(),
            param: param.map(str::to_owned),
        }
    }
}

fn reference(item: &Value) -> Option<&str> {
    // Where an item is no item at all, reading it says so.
    match input::kind(item, "") {
        Ok("item_reference") => item.get("id")?.as_str(),
        _ => None,
    }
}

/// Clients ask for as much as they can think of; the context ends it anyway.
fn limit(stop: &mut StopConditions, max_tokens: Option<i64>) -> Result<(), Error> {
    let Some(max_tokens) = max_tokens else {
        return Ok(());
    };
    let max_tokens = u32::try_from(max_tokens).unwrap_or(u32::MAX);
    if stop.min_tokens > max_tokens {
        return Err(Error::invalid(
            "min_tokens",
            "min_tokens is larger than max_output_tokens",
        ));
    }
    stop.max_tokens = Some(max_tokens);
    Ok(())
}

/// A request's conversation in neutral terms.
struct Conversed {
    prompt: ChatPrompt,
    reasoning: ReasoningOptions,
    callees: HashMap<String, super::tools::Callee>,
    input: Vec<Value>,
}

fn converse(
    body: Body,
    past: &Past,
    reasoning: reasoning::Fields,
    id: &str,
) -> Result<Conversed, Error> {
    let (reasoning, template_kwargs) = reasoning.into_options()?;
    let history = match (&body.previous_response_id, &body.conversation) {
        (Some(_), _) => "previous_response_id",
        (None, _) => "conversation",
    };
    let mut toolbox = Toolbox::default();
    toolbox.declare(body.tools.as_deref().unwrap_or_default(), "tools")?;
    let mut turns = Turns::new(toolbox);
    if let Some(instructions) = body.instructions.filter(|text| !text.is_empty()) {
        turns.instruct(&instructions);
    }
    for (index, item) in past.items.iter().enumerate() {
        turns.read(item, &format!("{history}.items[{index}]"))?;
    }
    let given = match body.input {
        Some(Input::Text(text)) => vec![items::of_text(&text)],
        Some(Input::Items(items)) => items,
        None if past.items.is_empty() => {
            return Err(Error::invalid("input", "input is missing"));
        }
        None => Vec::new(),
    };
    let mut input: Vec<Value> = Vec::with_capacity(given.len());
    for (index, item) in given.into_iter().enumerate() {
        let path = format!("input[{index}]");
        let item = match reference(&item) {
            None => item,
            // Already told with what comes before.
            Some(id) if is_among(&past.items, id) || is_among(&input, id) => continue,
            Some(id) => match past.referenced.get(id) {
                Some(item) => item.clone(),
                None => {
                    return Err(Error::NotKept {
                        kind: "item",
                        id: id.to_owned(),
                        param: Some(format!("{path}.id")),
                    });
                }
            },
        };
        turns.read(&item, &path)?;
        input.push(items::complete(item, &format!("{id}i{index:02}")));
    }
    let (messages, toolbox) = turns.into_parts();
    if messages.is_empty() {
        return Err(Error::invalid("input", "input: there is nothing to answer"));
    }
    let Offer {
        definitions,
        choice,
        callees,
    } = toolbox.offer(body.tool_choice.as_ref())?;
    Ok(Conversed {
        prompt: ChatPrompt {
            messages,
            tools: definitions,
            tool_choice: choice,
            single_tool_call: body.parallel_tool_calls == Some(false),
            template_kwargs,
            continue_final_message: false,
        },
        reasoning,
        callees,
        input,
    })
}

fn is_among(items: &[Value], id: &str) -> bool {
    items
        .iter()
        .any(|item| item.get("id").is_some_and(|own| own == id))
}

impl Body {
    /// The response before anything has been said.
    fn response(&self, context: &Context, top_logprobs: u8) -> Result<Response, Error> {
        let count = |name: &str, value: Option<i64>| {
            Ok::<_, Error>(checked(name, value, 0..)?.map(i64::cast_unsigned))
        };
        let text = self.text.as_ref();
        let reasoning = self.reasoning.as_ref();
        Ok(Response {
            id: format!("resp_{}", context.id),
            object: Object::Response,
            created_at: context.created_unix,
            completed_at: None,
            status: Status::InProgress,
            background: false,
            error: None,
            incomplete_details: None,
            instructions: self.instructions.clone(),
            max_output_tokens: count("max_output_tokens", self.max_output_tokens)?,
            max_tool_calls: count("max_tool_calls", self.max_tool_calls)?,
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
                format: TextFormat::Text,
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
