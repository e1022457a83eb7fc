//! What the backend says, as pieces of a completion or as a whole one.

use macmlx_inference::{
    FinishReason, GenerationEvent, InferenceError, Prompt, TokenLogprob, Usage,
};
use serde_json::Value;

use super::reply::{CompletionChoice, TextCompletion};
use crate::{
    Context, Frame, Framing, StreamEncoder, json,
    openai::{error, logprobs::Legacy, nullable::Nullable, usage},
};

/// Where the text of a prompt to be repeated comes from.
#[derive(Debug)]
pub(super) enum Echo {
    No,
    /// The client sent it, and nothing needs its tokens.
    Text(String),
    /// The backend reports the prompt's tokens.
    OfTokens,
}

impl Echo {
    pub(super) fn of(prompt: &Prompt, echo: bool, top: Option<u8>) -> Self {
        match prompt {
            _ if !echo => Self::No,
            Prompt::Text(text) if top.is_none() => Self::Text(text.clone()),
            // Its tokens stand in the order of the model, among others.
            Prompt::Infill(gap) => Self::Text(gap.prefix.clone()),
            Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Chat(_) => Self::OfTokens,
        }
    }
}

/// What the client asked for, beside the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) stream: bool,
    pub(super) usage: bool,
    /// Alternatives to report for each token.
    pub(super) top: Option<u8>,
    /// Number of choices of each prompt.
    pub(super) choices: u32,
}

/// Builds `text_completion` frames or one `text_completion`.
#[derive(Debug)]
pub struct Encoder {
    context: Context,
    wanted: Wanted,
    model: String,
    /// The model that answers is known.
    is_started: bool,
    prompts: Vec<Echo>,
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
    /// `prompts`: one for each prompt, in order.
    pub(super) fn new(context: Context, model: String, wanted: Wanted, prompts: Vec<Echo>) -> Self {
        Self {
            context,
            model,
            is_started: false,
            choices: (0..prompts.len() * wanted.choices as usize)
                .map(|_| Choice::new(wanted.top))
                .collect(),
            open_prompts: prompts.len(),
            prompts,
            usage: Usage::default(),
            wanted,
        }
    }

    pub(super) fn echoes(&self) -> &[Echo] {
        &self.prompts
    }

    fn index(&self, prompt: usize, choice: u32) -> usize {
        prompt * self.wanted.choices as usize + choice as usize
    }

    fn piece(&mut self, index: usize, text: &str, tokens: &[TokenLogprob]) -> Option<Frame> {
        let choice = self.choices.get_mut(index)?;
        let mut logprobs = legacy(self.wanted.top);
        if self.wanted.top.is_some() {
            logprobs.add(tokens, &mut choice.offset);
        }
        if text.is_empty() && (self.wanted.top.is_none() || tokens.is_empty()) {
            return None;
        }
        if self.wanted.stream {
            let logprobs = self.wanted.top.map(|_| logprobs);
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
        (first..first + self.wanted.choices as usize)
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
        if self.wanted.stream {
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
        if self.open_prompts > 0 || !self.wanted.stream {
            return Vec::new();
        }
        let mut frames = Vec::new();
        if self.wanted.usage {
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
            .wanted
            .usage
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
            GenerationEvent::Loading { .. }
            | GenerationEvent::Loaded { .. }
            | GenerationEvent::Prefill { .. }
            | GenerationEvent::ToolCall { .. }
            | GenerationEvent::ToolRun { .. } => Vec::new(),
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
                logprobs: self.wanted.top.map(|_| choice.logprobs),
                finish_reason: Some(choice.finish_reason.unwrap_or("stop")),
            })
            .collect();
        let usage = usage::Usage::from(&self.usage);
        json::value(&self.completion(choices, Some(Nullable(Some(usage)))))
    }
}
