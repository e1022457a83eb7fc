//! What requests to chat and to generate have in common.

use macmlx_inference::{GenerateRequest, Grammar, KeepAlive, Language, Logprobs, Prompt};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    answer::{Delta, End, Head, Shape},
    options::{self, Options},
    read_model_name, refuse_if, think,
};
use crate::{
    Endpoint, Error,
    grammar::{Only, grammar, json_schema},
    json, keep_alive,
    openai::grammar::Extras,
    range::check_range,
};

/// A generating endpoint, which may also be asked to load or unload its model.
pub trait Generating: Endpoint + Shape {
    /// `None`: there is something to answer.
    fn residency(request: &Self::Request) -> Option<Residency>;

    /// The reply once that is done; `model` is the id of the model that was meant.
    fn residency_reply(residency: &Residency, model: String, created_unix: u64) -> Value {
        let end = End {
            done_reason: if residency.is_unload() {
                "unload"
            } else {
                "load"
            },
            metrics: None,
            context: None,
        };
        json::value(&Self::reply(
            Head::new(model, created_unix),
            Delta::default(),
            Some(end),
        ))
    }
}

/// A request to load or unload: there is nothing to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Residency {
    /// The model's name as the client wrote it.
    pub model: String,
    pub keep_alive: Option<KeepAlive>,
}

impl Residency {
    /// The model is to go rather than to come.
    pub fn is_unload(&self) -> bool {
        self.keep_alive == Some(KeepAlive::For(std::time::Duration::ZERO))
    }
}

/// Fields of both bodies.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ollama::Generation)]
pub struct Fields {
    #[schema(required)]
    model: Option<String>,
    /// Default: true.
    stream: Option<bool>,
    /// `json`, or a JSON Schema that the answer satisfies.
    format: Option<Value>,
    /// Seconds, or a duration such as `5m`; negative: for ever; 0: unload after the answer.
    keep_alive: Option<Value>,
    #[schema(value_type = Option<Options>)]
    options: Option<Value>,
    /// A switch, or `low`, `medium`, `high` or `max`.
    think: Option<Value>,
    logprobs: Option<bool>,
    /// 0 to 20.
    top_logprobs: Option<i64>,
    /// Only false: a full context ends the answer.
    shift: Option<bool>,
    /// Only false.
    #[serde(rename = "_debug_render_only")]
    debug_render_only: Option<bool>,
    /// As servers of OpenAI's API have them.
    #[serde(skip)]
    #[schema(ignore)]
    grammars: Extras,
}

impl Fields {
    /// The fields, checked as far as they must be before the rest is read.
    pub(super) fn read(body: &Value) -> Result<Self, Error> {
        let mut fields: Self = json::fields(body)?;
        fields.grammars = json::fields(body)?;
        fields.check()?;
        Ok(fields)
    }

    fn check(&self) -> Result<(), Error> {
        read_model_name(self.model.clone(), None)?;
        keep_alive::read(self.keep_alive.as_ref())?;
        options::read(self.options.as_ref())?;
        self.grammar()?;
        refuse_if(
            self.shift == Some(true),
            "shift",
            "a full context ends the answer with the reason `length`",
        )?;
        refuse_if(
            self.debug_render_only == Some(true),
            "_debug_render_only",
            "prompts are not shown",
        )
    }

    fn grammar(&self) -> Result<Option<Grammar>, Error> {
        const PARAM: &str = "format";
        let mut only = Only::default();
        only.add(match &self.format {
            None => None,
            Some(Value::String(format)) => match format.as_str() {
                "" => None,
                "json" => Some(grammar(Language::JsonObject, PARAM)),
                other => {
                    return Err(Error::invalid(
                        PARAM,
                        format!("format is \"json\" or a JSON Schema object, not \"{other}\""),
                    ));
                }
            },
            Some(schema) => Some(json_schema(schema.clone(), PARAM)?),
        })?;
        self.grammars.clone().add_to(&mut only)?;
        Ok(only.into_grammar())
    }

    pub(super) fn model(&self) -> String {
        self.model.clone().unwrap_or_default()
    }

    pub(super) fn wants_stream(&self) -> bool {
        self.stream != Some(false)
    }

    pub(super) fn wants_logprobs(&self) -> bool {
        self.logprobs == Some(true)
    }

    pub(super) fn wants_thinking(&self) -> bool {
        !matches!(&self.think, None | Some(Value::Null | Value::Bool(false)))
    }

    pub(super) fn keep_alive(&self) -> Option<KeepAlive> {
        keep_alive::read(self.keep_alive.as_ref()).ok().flatten()
    }

    pub(super) fn residency(&self) -> Residency {
        Residency {
            model: self.model(),
            keep_alive: self.keep_alive(),
        }
    }

    /// The neutral request.
    pub(super) fn into_request(self, prompt: Prompt) -> Result<GenerateRequest, Error> {
        let wants_logprobs = self.wants_logprobs();
        let top = check_range("top_logprobs", self.top_logprobs, 0..=20)?.unwrap_or(0) as u8;
        if top > 0 && !wants_logprobs {
            return Err(Error::invalid(
                "top_logprobs",
                "top_logprobs needs `logprobs` to be true",
            ));
        }
        let reasoning = think::read(self.think.as_ref())?;
        let model = self.model();
        let grammar = self.grammar()?;
        let (sampling, stop) = options::read(self.options.as_ref())?;
        Ok(GenerateRequest {
            sampling,
            stop,
            logprobs: wants_logprobs.then_some(Logprobs { top, prompt: false }),
            reasoning,
            grammar,
            ..GenerateRequest::new(model, prompt)
        })
    }
}
