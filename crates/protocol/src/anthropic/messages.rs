//! `POST /v1/messages`.

use macmlx_inference::{
    ChatPrompt, GenerateRequest, Prompt, ReasoningOptions, SamplingParams, StopConditions,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

pub use super::encoder::Encoder;
use super::{
    context_management, conversation, refused,
    thinking::{self, Display, ThinkingConfig, known_effort},
    tools,
};
use crate::{Context, Dialect, Endpoint, Error, Translation, json, range::checked};

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct Messages;

/// The body, types checked. Fields that are not listed here are taken and change nothing, but for
/// those that are refused by name.
#[derive(Debug, Deserialize, ToSchema)]
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
    context_management: Option<Value>,
    stop_sequences: Option<Vec<String>>,
    /// 0 to 2.
    temperature: Option<f32>,
    /// 0 to 1.
    top_p: Option<f32>,
    top_k: Option<i64>,
    stream: Option<bool>,
}

/// How the answer is to be.
#[derive(Debug, Deserialize, ToSchema)]
struct OutputConfig {
    /// `low`, `medium`, `high`, `xhigh` or `max`.
    effort: Option<String>,
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
        let body = json::object(body)?;
        refused::check(&body)?;
        json::fields(&body)
    }

    /// The prompt, which is the same for every spelling of it.
    pub(super) fn question(&mut self) -> Result<Question, Error> {
        let mut conversation =
            conversation::conversation(self.system.as_ref(), &std::mem::take(&mut self.messages))?;
        context_management::apply(self.context_management.as_ref(), &mut conversation.messages)?;
        let tools = tools::tools(
            &self.tools.take().unwrap_or_default(),
            conversation.tool_changes,
            self.tool_choice.as_ref(),
        )?;
        let effort = self.output_config.take().and_then(|config| config.effort);
        let effort = known_effort("output_config.effort", effort)?;
        let (reasoning, display) =
            thinking::options(self.thinking.as_ref(), conversation.effort.or(effort))?;
        Ok(Question {
            chat: ChatPrompt {
                messages: conversation.messages,
                tools: tools.definitions,
                tool_choice: tools.choice,
                single_tool_call: tools.is_one_call_at_most,
                template_kwargs: Map::new(),
                continue_final_message: conversation.is_continued,
            },
            reasoning,
            display,
        })
    }

    fn sampling(&self) -> Result<SamplingParams, Error> {
        let top_k = checked("top_k", self.top_k, 0..=i64::from(u32::MAX))?;
        Ok(SamplingParams {
            temperature: checked("temperature", self.temperature, 0.0..=2.0)?,
            top_p: checked("top_p", self.top_p, 0.0..=1.0)?,
            top_k: top_k.map(|k| k as u32),
            ..SamplingParams::default()
        })
    }

    fn stop(&mut self) -> Result<StopConditions, Error> {
        let sequences = self.stop_sequences.take().unwrap_or_default();
        if let Some(index) = sequences.iter().position(String::is_empty) {
            let param = format!("stop_sequences[{index}]");
            let message = format!("{param} is empty");
            return Err(Error::invalid(param, message));
        }
        let max_tokens = checked("max_tokens", self.max_tokens, 0..)?;
        Ok(StopConditions {
            sequences,
            max_tokens: max_tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
            ..StopConditions::default()
        })
    }
}

impl Endpoint for Messages {
    type Request = Request;
    type Encoder = Encoder;

    const DIALECT: Dialect = Dialect::Anthropic;

    fn parse(body: &[u8]) -> Result<Request, Error> {
        Request::parse(body)
    }

    fn wants_stream(request: &Request) -> bool {
        request.stream == Some(true)
    }

    fn translate(mut request: Request, context: Context) -> Result<Translation<Encoder>, Error> {
        let question = request.question()?;
        let sampling = request.sampling()?;
        let stop = request.stop()?;
        let encoder = Encoder::new(
            context.id,
            Self::wants_stream(&request),
            question.display,
            stop.max_tokens,
        );
        let request = GenerateRequest {
            sampling,
            stop,
            reasoning: question.reasoning,
            ..GenerateRequest::new(request.model, Prompt::Chat(question.chat))
        };
        Ok(Translation {
            requests: vec![request],
            encoder,
        })
    }
}
