//! A request for a response: what it refers to, and what the backend is to do.

use std::collections::{HashMap, HashSet};

use macmlx_inference::{
    ChatPrompt, GenerateRequest, KeepAlive, Logprobs, Prompt, ReasoningOptions, TokenizeInput,
    TokenizeRequest,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    super::{grammar, reasoning, sampling, sampling::check_range, stop, tools::is_single},
    Responses,
    body::{Body, Conversation, Input},
    encoder::{Encoder, Options},
    input::{self, Turns},
    items,
    tools::{Callee, Offer, Toolbox},
};
use crate::{
    Context, Endpoint, Error, Translation,
    grammar::Only,
    json, keep_alive,
    sentinel::ANSWER_TOKENS,
    words::{self, Renamed},
};

/// The body, types checked.
#[derive(Debug)]
pub struct Request {
    body: Body,
    sampling: sampling::Sampling,
    stop: stop::Fields,
    reasoning: reasoning::Fields,
    grammar: grammar::Extras,
    keep_alive: keep_alive::Fields,
    renamed: Renamed,
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
        let words::Body { value, renamed } = words::read(Responses::VOCABULARY, body)?;
        renamed.clone().name(Self::read(&value, renamed))
    }

    fn read(body: &Value, renamed: Renamed) -> Result<Self, Error> {
        let request = Self {
            body: json::fields(body)?,
            sampling: sampling::Sampling::read(body)?,
            stop: json::fields(body)?,
            reasoning: json::fields(body)?,
            grammar: json::fields(body)?,
            keep_alive: keep_alive::Fields::read(body)?,
            renamed,
        };
        if request.body.previous_response_id.is_some() && request.body.conversation.is_some() {
            return Err(Error::invalid(
                "previous_response_id",
                "previous_response_id and conversation exclude each other",
            ));
        }
        Ok(request)
    }

    /// How long the model that answers is to stay in memory.
    pub fn keep_alive(&self) -> Option<KeepAlive> {
        self.keep_alive.wish()
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
        self.renamed
            .clone()
            .translation(self.translate_after(past, context))
    }

    fn translate_after(self, past: &Past, context: Context) -> Result<Translation<Encoder>, Error> {
        let wants_stream = self.wants_stream();
        let include = self.body.include.as_deref().unwrap_or_default();
        let includes = |what: &str| include.iter().any(|included| included == what);
        let top_logprobs =
            check_range("top_logprobs", self.body.top_logprobs, 0..=20)?.unwrap_or(0) as u8;
        let wants_logprobs = top_logprobs > 0
            || self.body.logprobs == Some(true)
            || includes("message.output_text.logprobs");
        let wants_sealed_reasoning = includes("reasoning.encrypted_content");
        let max_tokens = ANSWER_TOKENS.read("max_output_tokens", self.body.max_output_tokens)?;
        let stop = self.stop.into_conditions(max_tokens.limit())?;
        let response = self.body.response(&context, top_logprobs)?;
        let mut grammar = Only::default();
        grammar.add(response.text.format.grammar()?)?;
        self.grammar.add_to(&mut grammar)?;
        let conversed = converse(self.body, past, self.reasoning, &context.id)?;
        let request = GenerateRequest {
            model: response.model.clone(),
            prompt: Prompt::Chat(conversed.prompt),
            prompt_limit: None,
            sampling: self.sampling.into_params()?,
            stop,
            logprobs: wants_logprobs.then_some(Logprobs {
                top: top_logprobs,
                prompt: false,
            }),
            choices: 1,
            reasoning: conversed.reasoning,
            grammar: grammar.into_grammar(),
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
        let conversed = converse(self.body, past, self.reasoning, "");
        let conversed = self.renamed.name(conversed)?;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = responses::InputTokens)]
pub struct InputTokens {
    object: InputTokensObject,
    /// Tokens of the whole prompt.
    input_tokens: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = responses::InputTokensObject)]
enum InputTokensObject {
    #[serde(rename = "response.input_tokens")]
    InputTokens,
}

impl InputTokens {
    pub fn new(input_tokens: usize) -> Self {
        Self {
            object: InputTokensObject::InputTokens,
            input_tokens,
        }
    }
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

/// A request's conversation in neutral terms.
struct Conversed {
    prompt: ChatPrompt,
    reasoning: ReasoningOptions,
    callees: HashMap<String, Callee>,
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
    let mut told: HashSet<String> = past.items.iter().filter_map(id_of).collect();
    let mut input = Vec::with_capacity(given.len());
    for (index, item) in given.into_iter().enumerate() {
        let path = format!("input[{index}]");
        let item = match reference(&item) {
            None => item,
            // Already told with what comes before.
            Some(id) if told.contains(id) => continue,
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
        told.extend(id_of(&item));
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
            single_tool_call: body.parallel_tool_calls == Some(false)
                || body.tool_choice.as_ref().is_some_and(is_single),
            template_kwargs,
            continue_final_message: false,
        },
        reasoning,
        callees,
        input,
    })
}

fn id_of(item: &Value) -> Option<String> {
    Some(item.get("id")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use serde_json::json;

    use super::*;

    fn prompt_after(past: &Past, body: &Value) -> ChatPrompt {
        let context = Context {
            id: "0".into(),
            created_unix: 0,
            fingerprint: String::new(),
        };
        let request = Request::parse(body.to_string().as_bytes()).unwrap();
        let translation = request.translate(past, context).unwrap();
        match translation.requests.into_iter().next().unwrap().prompt {
            Prompt::Chat(chat) => chat,
            other => panic!("{other:?}"),
        }
    }

    fn prompt(body: &Value) -> ChatPrompt {
        prompt_after(&Past::default(), body)
    }

    fn recorded(case: &str) -> Value {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/protocol");
        let text = fs::read_to_string(root.join("responses").join(case).join("request.json"));
        let mut request: Value = serde_json::from_str(&text.unwrap()).unwrap();
        request["body"].take()
    }

    #[test]
    fn an_agents_next_turn_begins_with_its_last_one() {
        for (turn, next) in [
            ("client_codex", "client_codex_result"),
            ("client_codex_custom", "client_codex_custom_result"),
            ("client_codex_namespace", "client_codex_namespace_result"),
            ("client_copilot", "client_copilot_result"),
            ("client_opencode", "client_opencode_result"),
        ] {
            let (turn, next) = (prompt(&recorded(turn)), prompt(&recorded(next)));
            assert_eq!(turn.tools, next.tools);
            assert!(next.messages.len() > turn.messages.len());
            assert!(next.messages.starts_with(&turn.messages));
        }
    }

    #[test]
    fn every_spelling_of_a_conversation_is_the_same_prompt() {
        let text = |role: &str, kind: &str, text: &str| json!({"type": "message", "id": "msg_1", "status": "completed", "role": role, "content": [{"type": kind, "text": text}]});
        let spelled_out = json!({"model": "m", "input": [
            text("system", "input_text", "Be brief."),
            text("user", "input_text", "a"),
            text("assistant", "output_text", "b"),
            text("user", "input_text", "c"),
        ]});
        let expected = prompt(&spelled_out);
        let short = json!({"model": "m", "instructions": "Be brief.", "input": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": ["c"]},
        ]});
        assert_eq!(prompt(&short), expected);
        let past = Past {
            items: vec![
                text("user", "input_text", "a"),
                text("assistant", "output_text", "b"),
            ],
            ..Past::default()
        };
        for follows in ["previous_response_id", "conversation"] {
            let mut following = json!({"model": "m", "instructions": "Be brief.", "input": "c"});
            following[follows] = "kept".into();
            assert_eq!(prompt_after(&past, &following), expected);
        }
    }
}
