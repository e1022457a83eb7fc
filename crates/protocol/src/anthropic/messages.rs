//! `POST /v1/messages`.

use macmlx_inference::{
    ChatPrompt, GenerateRequest, Grammar, KeepAlive, Prompt, ReasoningOptions, StopConditions,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

pub use super::encoder::Encoder;
use super::{
    context_management, conversation,
    output_format::{self, OutputFormat},
    refused,
    reply::{Message, StreamEvent},
    thinking::{self, Display, ThinkingConfig, check_effort},
    tools,
};
use crate::{
    Body, Context, Described, Dialect, Endpoint, Error, Translation, Vocabulary, json, keep_alive,
    openai::{grammar::Extras, sampling},
    sentinel::ANSWER_TOKENS,
    words::{self, Api, Renamed},
};

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct Messages;

/// The body, types checked. Other words of other dialects are names for these, are read as there or
/// are refused by name; what is left changes nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = anthropic::MessagesRequest)]
pub struct Request {
    pub(super) model: String,
    /// Turns of `user`, `assistant` and `system`, in any order.
    messages: Vec<Value>,
    /// A string or text blocks.
    system: Option<Value>,
    /// Any size: what does not fit the model's context is not generated. Not given: as much as
    /// fits.
    max_tokens: Option<i64>,
    /// Tools of the client. Those without `input_schema` are not offered to the model.
    tools: Option<Vec<Value>>,
    /// `{"type": "auto" | "any" | "tool" | "none"}`, with `name` and `disable_parallel_tool_use`.
    tool_choice: Option<Value>,
    thinking: Option<ThinkingConfig>,
    output_config: Option<OutputConfig>,
    /// `output_config.format` as it was called in beta.
    #[schema(value_type = Option<OutputFormat>)]
    output_format: Option<Value>,
    context_management: Option<Value>,
    stop_sequences: Option<Vec<String>>,
    /// 0 to 2.
    #[serde(rename = "temperature")]
    _temperature: Option<f32>,
    /// 0 to 1.
    #[serde(rename = "top_p")]
    _top_p: Option<f32>,
    #[serde(rename = "top_k")]
    _top_k: Option<i64>,
    stream: Option<bool>,
    /// How long the model stays in memory after its last use, as Ollama has it; in LM Studio's
    /// words `ttl`, in seconds.
    #[serde(rename = "keep_alive")]
    _keep_alive: Option<Value>,
    #[serde(skip)]
    #[schema(ignore)]
    others: Others,
    #[serde(skip)]
    #[schema(ignore)]
    renamed: Renamed,
}

/// What is read as OpenAI's servers have it.
#[derive(Debug, Default)]
struct Others {
    sampling: sampling::Sampling,
    grammars: Extras,
    options: Options,
    keep_alive: keep_alive::Fields,
}

#[derive(Debug, Default, Deserialize)]
struct Options {
    parallel_tool_calls: Option<bool>,
    chat_template_kwargs: Option<Map<String, Value>>,
}

/// How the answer is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = anthropic::OutputConfig)]
struct OutputConfig {
    /// `low`, `medium`, `high`, `xhigh` or `max`.
    effort: Option<String>,
    #[schema(value_type = Option<OutputFormat>)]
    format: Option<Value>,
}

/// What the model is asked, and how it may think about it.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) chat: ChatPrompt,
    pub(super) reasoning: ReasoningOptions,
    pub(super) display: Display,
}

impl Request {
    /// Reads the body of a route that takes messages.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Error> {
        let words::Body { value, renamed } = words::read(Messages::VOCABULARY, body)?;
        renamed.clone().name(Self::read(&value, renamed))
    }

    fn read(body: &Value, renamed: Renamed) -> Result<Self, Error> {
        refused::check(body)?;
        let mut request: Self = json::fields(body)?;
        request.others = Others {
            sampling: sampling::Sampling::read(body)?,
            grammars: json::fields(body)?,
            options: json::fields(body)?,
            keep_alive: keep_alive::Fields::read(body)?,
        };
        request.renamed = renamed;
        Ok(request)
    }

    /// The prompt in neutral terms, with errors in the client's words.
    pub(super) fn question(&mut self) -> Result<Question, Error> {
        self.renamed.clone().name(self.translate_prompt())
    }

    /// The prompt, which is the same for every spelling of it.
    fn translate_prompt(&mut self) -> Result<Question, Error> {
        let mut conversation =
            conversation::conversation(self.system.as_ref(), &std::mem::take(&mut self.messages))?;
        context_management::apply(self.context_management.as_ref(), &mut conversation.messages)?;
        let tools = tools::tools(
            &self.tools.take().unwrap_or_default(),
            conversation.tool_changes,
            self.tool_choice.as_ref(),
            self.others.options.parallel_tool_calls,
        )?;
        let template_kwargs = self.others.options.chat_template_kwargs.take();
        let template_kwargs = template_kwargs.unwrap_or_default();
        let is_enabled = template_kwargs
            .get("enable_thinking")
            .and_then(Value::as_bool);
        let effort = self
            .output_config
            .as_ref()
            .and_then(|config| config.effort.clone());
        let effort = check_effort("output_config.effort", effort)?;
        let (reasoning, display) = thinking::options(
            self.thinking.as_ref(),
            is_enabled,
            conversation.effort.or(effort),
        )?;
        Ok(Question {
            chat: ChatPrompt {
                messages: conversation.messages,
                tools: tools.definitions,
                tool_choice: tools.choice,
                single_tool_call: tools.is_one_call_at_most,
                template_kwargs,
                continue_final_message: conversation.is_continued,
            },
            reasoning,
            display,
        })
    }

    fn grammar(&self) -> Result<Option<Grammar>, Error> {
        let format = self
            .output_config
            .as_ref()
            .and_then(|config| config.format.as_ref());
        let mut only = output_format::grammar(format, self.output_format.as_ref())?;
        self.others.grammars.clone().add_to(&mut only)?;
        Ok(only.into_grammar())
    }

    fn stop(&mut self) -> Result<StopConditions, Error> {
        let sequences = self.stop_sequences.take().unwrap_or_default();
        if let Some(index) = sequences.iter().position(String::is_empty) {
            let param = format!("stop_sequences[{index}]");
            let message = format!("{param} is empty");
            return Err(Error::invalid(param, message));
        }
        // With 0 the prompt is only read.
        let max_tokens = ANSWER_TOKENS
            .with_least(0)
            .read("max_tokens", self.max_tokens)?;
        Ok(StopConditions {
            sequences,
            max_tokens: max_tokens.limit(),
            ..StopConditions::default()
        })
    }
}

impl Described for Messages {
    const SUMMARY: &'static str = "Answer a conversation";

    type Body = Request;
    type Answer = Message;
    type Event = StreamEvent;
}

impl Endpoint for Messages {
    type Request = Request;
    type Encoder = Encoder;

    const DIALECT: Dialect = Dialect::Anthropic;
    const VOCABULARY: Vocabulary = Vocabulary::shared(Api::Messages);

    fn parse(body: Body<'_>) -> Result<Request, Error> {
        Request::parse(body.bytes)
    }

    fn keep_alive(request: &Request) -> Option<KeepAlive> {
        request.others.keep_alive.wish()
    }

    fn wants_stream(request: &Request) -> bool {
        request.stream == Some(true)
    }

    fn translate(request: Request, context: Context) -> Result<Translation<Encoder>, Error> {
        request
            .renamed
            .clone()
            .translation(request.translate(context))
    }
}

impl Request {
    fn translate(mut self, context: Context) -> Result<Translation<Encoder>, Error> {
        let question = self.translate_prompt()?;
        let request = &mut self;
        let sampling = std::mem::take(&mut request.others.sampling).into_params()?;
        let stop = request.stop()?;
        let grammar = request.grammar()?;
        if grammar.is_some() && question.chat.continue_final_message {
            // The client would get the rest of something whose beginning nothing governs.
            return Err(Error::invalid(
                "messages",
                "the last turn must be the user's where the answer has an output format",
            ));
        }
        let encoder = Encoder::new(
            context.id,
            Messages::wants_stream(request),
            question.display,
            stop.max_tokens,
        );
        let request = GenerateRequest {
            sampling,
            stop,
            reasoning: question.reasoning,
            grammar,
            ..GenerateRequest::new(request.model.clone(), Prompt::Chat(question.chat))
        };
        Ok(Translation {
            requests: vec![request],
            encoder,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn translate(body: &Value) -> Result<GenerateRequest, Error> {
        let context = Context {
            id: "1".into(),
            created_unix: 0,
            fingerprint: String::new(),
        };
        let request = Messages::parse(Body::json(body.to_string().as_bytes()))?;
        Ok(Messages::translate(request, context)?.requests.remove(0))
    }

    fn refused(body: &Value) -> String {
        match translate(body).unwrap_err() {
            Error::Invalid { param, .. } => param.unwrap(),
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    fn body() -> Value {
        json!({
            "model": "m",
            "max_tokens": 100,
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": "list files"},
                {"role": "system", "content": "skills"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "ls", "signature": "c2ln"},
                    {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "a.txt"},
                ]},
            ],
            "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
        })
    }

    #[test]
    fn every_spelling_of_a_prompt_is_the_same_request() {
        let expected = translate(&body()).unwrap();
        let mark = json!({"type": "ephemeral"});
        let block = |text: &str| json!([{"type": "text", "text": text, "cache_control": mark}]);
        let spellings: [(&str, Value); 13] = [
            ("/system", block("Be brief.")),
            ("/messages/0/content", block("list files")),
            ("/messages/1/content", block("skills")),
            ("/messages/3/content/0/content", block("a.txt")),
            ("/messages/3/content/0/cache_control", mark.clone()),
            ("/messages/3/content/0/is_error", json!(false)),
            ("/messages/2/content/1/cache_control", mark.clone()),
            ("/messages/2/content/0/signature", json!("other")),
            ("/tools/0/cache_control", mark.clone()),
            ("/metadata", json!({"user_id": "u"})),
            ("/stream", json!(true)),
            ("/service_tier", json!("auto")),
            (
                "/context_management",
                json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}),
            ),
        ];
        let mut all = body();
        for (place, value) in spellings {
            let mut changed = body();
            for body in [&mut changed, &mut all] {
                let (parent, name) = place.rsplit_once('/').unwrap();
                body.pointer_mut(parent).unwrap()[name] = value.clone();
            }
            assert_eq!(translate(&changed).unwrap(), expected, "{place}");
        }
        assert_eq!(translate(&all).unwrap(), expected);
    }

    #[test]
    fn tokens_are_counted_of_the_prompt_that_is_generated_from() {
        let mut body = body();
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 64});
        let request = translate(&body).unwrap();
        body.as_object_mut().unwrap().remove("max_tokens");
        let counted = super::super::count_tokens::request(body.to_string().as_bytes()).unwrap();
        let macmlx_inference::TokenizeInput::Chat { prompt, reasoning } = counted.input else {
            panic!("a conversation was sent");
        };
        assert_eq!(Prompt::Chat(prompt), request.prompt);
        assert_eq!(reasoning, request.reasoning);
        assert_eq!(counted.model, request.model);
    }

    #[test]
    fn sampling_and_limits_are_read() {
        let mut body = body();
        body["temperature"] = json!(0.5);
        body["top_p"] = json!(0.9);
        body["top_k"] = json!(5);
        body["stop_sequences"] = json!(["END", "\n\n"]);
        body["max_tokens"] = json!(i64::MAX);
        let request = translate(&body).unwrap();
        assert_eq!(request.sampling.temperature, Some(0.5));
        assert_eq!(request.sampling.top_p, Some(0.9));
        assert_eq!(request.sampling.top_k, Some(5));
        assert_eq!(request.stop.sequences, ["END", "\n\n"]);
        assert_eq!(request.stop.max_tokens, Some(u32::MAX));
        body["max_tokens"] = Value::Null;
        assert_eq!(translate(&body).unwrap().stop.max_tokens, None);
    }

    #[test]
    fn the_effort_of_the_newest_turn_has_the_say() {
        let mut body = body();
        body["output_config"] = json!({"effort": "high"});
        let effort = |body: &Value| translate(body).unwrap().reasoning.effort;
        assert_eq!(effort(&body).as_deref(), Some("high"));
        body["messages"][1]["output_config"] = json!({"effort": "low"});
        assert_eq!(effort(&body).as_deref(), Some("low"));
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        for (name, value, param) in [
            ("model", json!(null), "model"),
            ("messages", json!("hi"), "messages"),
            ("max_tokens", json!(-3), "max_tokens"),
            ("max_tokens", json!("many"), "max_tokens"),
            ("temperature", json!(2.5), "temperature"),
            ("temperature", json!(1e308), "temperature"),
            ("top_p", json!(-0.5), "top_p"),
            ("top_k", json!(-2), "top_k"),
            ("stop_sequences", json!(["a", ""]), "stop_sequences[1]"),
            ("stop_sequences", json!("a"), "stop_sequences"),
            ("system", json!(5), "system"),
            ("system", json!([5]), "system[0]"),
            ("thinking", json!({"type": "loud"}), "thinking.type"),
            (
                "output_config",
                json!({"effort": "lots"}),
                "output_config.effort",
            ),
            (
                "output_format",
                json!({"type": "json_schema"}),
                "output_format.schema",
            ),
            (
                "output_config",
                json!({"format": {"type": "json_object", "schema": {}}}),
                "output_config.format.type",
            ),
            ("tools", json!({}), "tools"),
        ] {
            let mut body = body();
            body[name] = value;
            assert_eq!(refused(&body), param);
        }
        let mut body = body();
        body.as_object_mut().unwrap().remove("model");
        assert_eq!(refused(&body), "model");
    }
}
