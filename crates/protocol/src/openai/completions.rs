//! `POST /v1/completions`, in the shape of `text_completion`.

use macmlx_inference::{
    FinishReason, GenerateRequest, GenerationEvent, InferenceError, Logprobs, Prompt, TokenLogprob,
    Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    chat_completions::StreamOptions, error, logprobs::Legacy, nullable::Nullable, refused,
    sampling, sampling::checked, stop, usage,
};
use crate::{Context, Described, Dialect, Endpoint, Error, Frame, Framing, StreamEncoder, Translation, json};

/// OpenAI's default for this endpoint.
const DEFAULT_MAX_TOKENS: u32 = 16;
const MAX_PROMPTS: usize = 1024;

/// The route, as data for [`Endpoint`].
#[derive(Debug)]
pub struct Completions;

/// The body, types checked.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::CompletionRequest)]
pub struct Request {
    #[serde(flatten)]
    fields: Fields,
    #[serde(flatten)]
    sampling: sampling::Fields,
    #[serde(flatten)]
    stop: stop::Fields,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::Completion)]
struct Fields {
    model: String,
    /// Text, tokens, or a list of either.
    prompt: Value,
    n: Option<i64>,
    best_of: Option<i64>,
    echo: Option<bool>,
    /// Alternatives for each token; 0 reports the sampled token alone.
    logprobs: Option<i64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

impl Described for Completions {
    const SUMMARY: &'static str = "Continue a text";

    type Body = Request;
    type Answer = TextCompletion;
    type Event = TextCompletion;
}

impl Endpoint for Completions {
    type Request = Request;
    type Encoder = Encoder;

    const DIALECT: Dialect = Dialect::OpenAi;

    fn parse(body: &[u8]) -> Result<Request, Error> {
        let body = json::object(body)?;
        refused::check_completions(&body)?;
        Ok(Request {
            fields: json::fields(&body)?,
            sampling: json::fields(&body)?,
            stop: json::fields(&body)?,
        })
    }

    fn wants_stream(request: &Request) -> bool {
        request.fields.stream == Some(true)
    }

    fn translate(request: Request, context: Context) -> Result<Translation<Encoder>, Error> {
        let wants_stream = Self::wants_stream(&request);
        let fields = request.fields;
        let prompts = prompts(fields.prompt)?;
        let choices = checked("n", fields.n, 1..=128)?.unwrap_or(1) as u32;
        if fields
            .best_of
            .is_some_and(|best_of| best_of != i64::from(choices))
        {
            return Err(Error::unsupported(
                "best_of",
                "choices are not ranked; use `n`",
            ));
        }
        let top = checked("logprobs", fields.logprobs, 0..=5)?.map(|top| top as u8);
        let echo = fields.echo == Some(true);
        let sampling = request.sampling.into_params()?;
        // An echo alone is a way to score a prompt.
        let least = i64::from(!echo);
        let stop = request
            .stop
            .into_conditions(least, Some(DEFAULT_MAX_TOKENS))?;
        let encoder = Encoder {
            context,
            wants_stream,
            wants_usage: StreamOptions::wants_usage(fields.stream_options.as_ref()),
            top,
            model: fields.model.clone(),
            is_started: false,
            prompts: prompts
                .iter()
                .map(|prompt| Echo::of(prompt, echo, top))
                .collect(),
            choices_of_each: choices as usize,
            choices: (0..prompts.len() * choices as usize)
                .map(|_| Choice::new(top))
                .collect(),
            open_prompts: prompts.len(),
            usage: Usage::default(),
        };
        let requests = prompts
            .into_iter()
            .zip(&encoder.prompts)
            .map(|(prompt, prompt_echo)| GenerateRequest {
                model: fields.model.clone(),
                logprobs: logprobs(top, prompt_echo),
                prompt,
                sampling: sampling.clone(),
                stop: stop.clone(),
                choices,
                ..GenerateRequest::new(String::new(), Prompt::Text(String::new()))
            })
            .collect();
        Ok(Translation { requests, encoder })
    }
}

fn logprobs(top: Option<u8>, echo: &Echo) -> Option<Logprobs> {
    let prompt = matches!(echo, Echo::OfTokens);
    (top.is_some() || prompt).then(|| Logprobs {
        top: top.unwrap_or(0),
        prompt,
    })
}

/// One prompt for each string or array of tokens.
fn prompts(prompt: Value) -> Result<Vec<Prompt>, Error> {
    let prompts = match prompt {
        Value::String(text) => vec![Prompt::Text(text)],
        Value::Array(items) if items.first().is_some_and(Value::is_number) => {
            vec![Prompt::Tokens(json::fields_at(&items.into(), "prompt")?)]
        }
        Value::Array(items) => items
            .into_iter()
            .enumerate()
            .map(|(index, item)| match item {
                Value::String(text) => Ok(Prompt::Text(text)),
                Value::Array(_) => {
                    json::fields_at(&item, &format!("prompt[{index}]")).map(Prompt::Tokens)
                }
                _ => Err(wrong_prompt(&format!("prompt[{index}]"))),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(wrong_prompt("prompt")),
    };
    if let Some(index) = prompts
        .iter()
        .position(|prompt| matches!(prompt, Prompt::Tokens(tokens) if tokens.is_empty()))
    {
        return Err(Error::invalid(
            "prompt",
            format!("prompt[{index}] has no tokens"),
        ));
    }
    match prompts.len() {
        0 => Err(Error::invalid("prompt", "prompt is empty")),
        1..=MAX_PROMPTS => Ok(prompts),
        count => Err(Error::invalid(
            "prompt",
            format!("prompt has {count} items; at most {MAX_PROMPTS} are taken at once"),
        )),
    }
}

fn wrong_prompt(param: &str) -> Error {
    Error::invalid(
        param,
        format!("{param} must be a string, an array of strings, or an array or arrays of tokens"),
    )
}

/// Where the text of a prompt to be repeated comes from.
#[derive(Debug)]
enum Echo {
    No,
    /// The client sent it, and nothing needs its tokens.
    Text(String),
    /// The backend reports the prompt's tokens.
    OfTokens,
}

impl Echo {
    fn of(prompt: &Prompt, echo: bool, top: Option<u8>) -> Self {
        match prompt {
            _ if !echo => Self::No,
            Prompt::Text(text) if top.is_none() => Self::Text(text.clone()),
            Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Chat(_) => Self::OfTokens,
        }
    }
}

/// A whole completion, or a piece of one.
#[derive(Debug, Serialize, ToSchema)]
pub struct TextCompletion {
    id: String,
    object: &'static str,
    created: u64,
    model: String,
    system_fingerprint: String,
    /// Of a piece: one, or none where the usage is told.
    choices: Vec<CompletionChoice>,
    /// Of pieces: only if asked for, `null` in all but the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<usage::Usage>)]
    usage: Option<Nullable<usage::Usage>>,
}

/// One text, or a piece of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct CompletionChoice {
    index: usize,
    text: String,
    logprobs: Option<Legacy>,
    /// `stop` or `length`; `null` in all pieces but a choice's last.
    finish_reason: Option<&'static str>,
}

/// Builds `text_completion` frames or one `text_completion`.
#[derive(Debug)]
pub struct Encoder {
    context: Context,
    wants_stream: bool,
    wants_usage: bool,
    top: Option<u8>,
    model: String,
    /// The model that answers is known.
    is_started: bool,
    prompts: Vec<Echo>,
    choices_of_each: usize,
    /// All choices of the first prompt, then those of the next.
    choices: Vec<Choice>,
    open_prompts: usize,
    usage: Usage,
}

#[derive(Debug)]
struct Choice {
    text: String,
    logprobs: Legacy,
    /// Characters of text so far, frames included.
    offset: usize,
    finish_reason: Option<&'static str>,
}

impl Choice {
    fn new(top: Option<u8>) -> Self {
        Self {
            text: String::new(),
            logprobs: legacy(top),
            offset: 0,
            finish_reason: None,
        }
    }
}

fn legacy(top: Option<u8>) -> Legacy {
    Legacy::new(top.is_some_and(|top| top > 0))
}

impl Encoder {
    fn index(&self, prompt: usize, choice: u32) -> usize {
        prompt * self.choices_of_each + choice as usize
    }

    fn piece(&mut self, index: usize, text: &str, tokens: &[TokenLogprob]) -> Option<Frame> {
        let choice = self.choices.get_mut(index)?;
        let mut logprobs = legacy(self.top);
        if self.top.is_some() {
            logprobs.add(tokens, &mut choice.offset);
        }
        if text.is_empty() && (self.top.is_none() || tokens.is_empty()) {
            return None;
        }
        if self.wants_stream {
            let logprobs = self.top.map(|_| logprobs);
            return Some(self.chunk(index, text, logprobs, None));
        }
        choice.text.push_str(text);
        choice.logprobs.append(logprobs);
        None
    }

    fn echo(&mut self, prompt: usize, tokens: &[TokenLogprob]) -> Vec<Frame> {
        let text = match self.prompts.get(prompt) {
            Some(Echo::Text(text)) => text.clone(),
            Some(Echo::OfTokens) => {
                let bytes: Vec<u8> = tokens
                    .iter()
                    .flat_map(|token| token.bytes.iter().copied())
                    .collect();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Some(Echo::No) | None => return Vec::new(),
        };
        let first = self.index(prompt, 0);
        (first..first + self.choices_of_each)
            .filter_map(|index| self.piece(index, &text, tokens))
            .collect()
    }

    fn finish(&mut self, index: usize, reason: FinishReason) -> Vec<Frame> {
        let reason = match reason {
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled => "stop",
            FinishReason::Length => "length",
        };
        let Some(choice) = self.choices.get_mut(index) else {
            return Vec::new();
        };
        choice.finish_reason = Some(reason);
        if self.wants_stream {
            vec![self.chunk(index, "", None, Some(reason))]
        } else {
            Vec::new()
        }
    }

    fn complete(&mut self, usage: Usage) -> Vec<Frame> {
        self.usage.prompt_tokens += usage.prompt_tokens;
        self.usage.cached_tokens += usage.cached_tokens;
        self.usage.completion_tokens += usage.completion_tokens;
        self.usage.reasoning_tokens += usage.reasoning_tokens;
        self.open_prompts = self.open_prompts.saturating_sub(1);
        if self.open_prompts > 0 || !self.wants_stream {
            return Vec::new();
        }
        let mut frames = Vec::new();
        if self.wants_usage {
            frames.push(self.frame(Vec::new()));
        }
        frames.push(Frame::data("[DONE]"));
        frames
    }

    fn chunk(
        &self,
        index: usize,
        text: &str,
        logprobs: Option<Legacy>,
        finish_reason: Option<&'static str>,
    ) -> Frame {
        self.frame(vec![CompletionChoice {
            index,
            text: text.to_owned(),
            logprobs,
            finish_reason,
        }])
    }

    fn frame(&self, choices: Vec<CompletionChoice>) -> Frame {
        let usage = self
            .wants_usage
            .then(|| Nullable((self.open_prompts == 0).then(|| usage::Usage::from(&self.usage))));
        Frame::data(json::text(&self.completion(choices, usage)))
    }

    fn completion(
        &self,
        choices: Vec<CompletionChoice>,
        usage: Option<Nullable<usage::Usage>>,
    ) -> TextCompletion {
        TextCompletion {
            id: format!("cmpl-{}", self.context.id),
            object: "text_completion",
            created: self.context.created_unix,
            model: self.model.clone(),
            system_fingerprint: self.context.fingerprint.clone(),
            choices,
            usage,
        }
    }
}

impl StreamEncoder for Encoder {
    const FRAMING: Framing = Framing::Sse;

    fn encode(&mut self, prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        match event {
            GenerationEvent::Started { model, .. } => {
                self.model = model;
                self.is_started = true;
                match self.prompts.get(prompt) {
                    Some(Echo::Text(_)) => self.echo(prompt, &[]),
                    Some(Echo::No | Echo::OfTokens) | None => Vec::new(),
                }
            }
            // A raw prompt's output is not parsed: there are no calls, and all of it is text.
            GenerationEvent::Prefill { .. } | GenerationEvent::ToolCall { .. } => Vec::new(),
            GenerationEvent::PromptLogprobs { tokens } => self.echo(prompt, &tokens),
            GenerationEvent::Text {
                choice,
                text,
                tokens,
            }
            | GenerationEvent::Reasoning {
                choice,
                text,
                tokens,
            } => Vec::from_iter(self.piece(self.index(prompt, choice), &text, &tokens)),
            GenerationEvent::Finished { choice, reason, .. } => {
                self.finish(self.index(prompt, choice), reason)
            }
            GenerationEvent::Completed { usage, .. } => self.complete(usage),
        }
    }

    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame> {
        vec![Frame::data(error::mid_stream(error).to_string())]
    }

    fn heartbeat(&mut self) -> Vec<Frame> {
        if self.is_started {
            vec![self.chunk(0, "", None, None)]
        } else {
            vec![Frame::Comment("keep-alive")]
        }
    }

    fn into_body(mut self) -> Value {
        let choices = std::mem::take(&mut self.choices)
            .into_iter()
            .enumerate()
            .map(|(index, choice)| CompletionChoice {
                index,
                text: choice.text,
                logprobs: self.top.map(|_| choice.logprobs),
                finish_reason: Some(choice.finish_reason.unwrap_or("stop")),
            })
            .collect();
        let usage = usage::Usage::from(&self.usage);
        json::value(&self.completion(choices, Some(Nullable(Some(usage)))))
    }
}
