//! Events of a generation as `chat.completion.chunk` frames or one `chat.completion`.

use macmlx_inference::{FinishReason, GenerationEvent, InferenceError, TokenLogprob, ToolCallPart};
use serde_json::Value;

use super::{
    super::{error, logprobs, nullable::Nullable, tools::Calls, usage::Usage},
    call::Written,
    reply::{ChatCompletion, ChatCompletionChunk, ChunkChoice, Delta, Logprobs, Message},
};
use crate::{Context, Frame, Framing, StreamEncoder, json};

/// What the client asked to be told.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) stream: bool,
    pub(super) usage: bool,
    pub(super) logprobs: bool,
    pub(super) calls: Calls,
}

/// Builds `chat.completion.chunk` frames or one `chat.completion`.
#[derive(Debug)]
pub struct Encoder {
    context: Context,
    wanted: Wanted,
    model: String,
    is_started: bool,
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

/// What is known of one choice. Text is kept only for a reply that is not streamed.
#[derive(Debug, Default)]
struct Choice {
    content: String,
    reasoning: String,
    calls: Written,
    logprobs: Vec<Value>,
    finish_reason: Option<&'static str>,
}

impl Encoder {
    /// `model`: as the client named it.
    pub(super) fn new(context: Context, wanted: Wanted, model: String, choices: u32) -> Self {
        Self {
            context,
            wanted,
            model,
            is_started: false,
            choices: (0..choices).map(|_| Choice::default()).collect(),
            usage: None,
        }
    }

    fn start(&mut self, model: String) -> Vec<Frame> {
        self.model = model;
        self.is_started = true;
        if !self.wanted.stream {
            return Vec::new();
        }
        (0..self.choices.len() as u32)
            .map(|index| {
                let delta = Delta {
                    role: Some("assistant"),
                    content: Some(String::new()),
                    ..Delta::default()
                };
                self.piece(index, delta)
            })
            .collect()
    }

    fn text(&mut self, index: u32, text: String, tokens: &[TokenLogprob]) -> Vec<Frame> {
        let mut entries = if self.wanted.logprobs {
            logprobs::chat_entries(tokens)
        } else {
            Vec::new()
        };
        let Some(choice) = self.choices.get_mut(index as usize) else {
            return Vec::new();
        };
        if text.is_empty() && entries.is_empty() {
            return Vec::new();
        }
        if !self.wanted.stream {
            choice.content.push_str(&text);
            choice.logprobs.append(&mut entries);
            return Vec::new();
        }
        let delta = Delta {
            content: Some(text),
            ..Delta::default()
        };
        vec![self.chunk(index, delta, self.wanted.logprobs.then_some(entries), None)]
    }

    fn reasoning(&mut self, index: u32, text: String) -> Vec<Frame> {
        let Some(choice) = self.choices.get_mut(index as usize) else {
            return Vec::new();
        };
        if text.is_empty() {
            return Vec::new();
        }
        if !self.wanted.stream {
            choice.reasoning.push_str(&text);
            return Vec::new();
        }
        let delta = Delta {
            reasoning_content: Some(text),
            ..Delta::default()
        };
        vec![self.piece(index, delta)]
    }

    fn call(&mut self, index: u32, part: ToolCallPart) -> Vec<Frame> {
        let (form, streams) = (&self.wanted.calls, self.wanted.stream);
        let Some(choice) = self.choices.get_mut(index as usize) else {
            return Vec::new();
        };
        let calls = &mut choice.calls;
        let delta = match part {
            ToolCallPart::Start { id, name } => Some(calls.start(id, name, form, streams)),
            ToolCallPart::Arguments(text) => calls.arguments(text, form, streams),
            ToolCallPart::End => calls.end(form, streams),
        };
        self.write_delta(index, delta)
    }

    fn finish(&mut self, index: u32, reason: FinishReason) -> Vec<Frame> {
        let Some(choice) = self.choices.get_mut(index as usize) else {
            return Vec::new();
        };
        let called = if self.wanted.calls.is_legacy {
            "function_call"
        } else {
            "tool_calls"
        };
        let reason = match reason {
            FinishReason::Stop | FinishReason::Cancelled if choice.calls.are_whole() => called,
            FinishReason::Stop | FinishReason::Cancelled => "stop",
            FinishReason::Length => "length",
            FinishReason::ToolCalls => called,
        };
        choice.finish_reason = Some(reason);
        if !self.wanted.stream {
            return Vec::new();
        }
        vec![self.chunk(index, Delta::default(), None, Some(reason))]
    }

    fn complete(&mut self, usage: Usage) -> Vec<Frame> {
        self.usage = Some(usage);
        let mut frames = Vec::new();
        if self.wanted.stream {
            if self.wanted.usage {
                frames.push(self.frame(Vec::new()));
            }
            frames.push(Frame::data("[DONE]"));
        }
        frames
    }

    /// What is new in a choice, if that is told at once.
    fn write_delta(&self, index: u32, delta: Option<Delta>) -> Vec<Frame> {
        delta
            .filter(|_| self.wanted.stream)
            .map(|delta| self.piece(index, delta))
            .into_iter()
            .collect()
    }

    fn piece(&self, index: u32, delta: Delta) -> Frame {
        self.chunk(index, delta, None, None)
    }

    fn chunk(
        &self,
        index: u32,
        delta: Delta,
        logprobs: Option<Vec<Value>>,
        finish_reason: Option<&'static str>,
    ) -> Frame {
        self.frame(vec![ChunkChoice {
            index,
            delta,
            logprobs: logprobs.map(Logprobs::new),
            finish_reason,
        }])
    }

    fn frame(&self, choices: Vec<ChunkChoice>) -> Frame {
        Frame::data(json::text(&ChatCompletionChunk {
            id: self.id(),
            object: "chat.completion.chunk",
            created: self.context.created_unix,
            model: self.model.clone(),
            system_fingerprint: self.context.fingerprint.clone(),
            choices,
            usage: self.wanted.usage.then(|| Nullable(self.usage.clone())),
        }))
    }

    fn id(&self) -> String {
        format!("chatcmpl-{}", self.context.id)
    }
}

impl StreamEncoder for Encoder {
    const FRAMING: Framing = Framing::Sse;

    fn encode(&mut self, _prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        match event {
            GenerationEvent::Started { model, .. } => self.start(model),
            GenerationEvent::Loading { .. }
            | GenerationEvent::Loaded { .. }
            | GenerationEvent::Prefill { .. }
            | GenerationEvent::PromptLogprobs { .. }
            | GenerationEvent::ToolRun { .. } => Vec::new(),
            GenerationEvent::Text {
                choice,
                text,
                tokens,
            } => self.text(choice, text, &tokens),
            // `logprobs.content` is about the content: tokens of thinking are left out.
            GenerationEvent::Reasoning { choice, text, .. } => self.reasoning(choice, text),
            GenerationEvent::ToolCall { choice, part, .. } => self.call(choice, part),
            GenerationEvent::Finished { choice, reason, .. } => self.finish(choice, reason),
            GenerationEvent::Completed { usage, .. } => self.complete(Usage::from(&usage)),
        }
    }

    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame> {
        vec![Frame::data(error::mid_stream(error).to_string())]
    }

    /// An empty piece of the first choice: some clients do not count comments as life. Before the
    /// answering model is known there is nothing such a piece could say.
    fn heartbeat(&mut self) -> Vec<Frame> {
        if self.is_started {
            vec![self.piece(0, Delta::default())]
        } else {
            vec![Frame::Comment("keep-alive")]
        }
    }

    fn into_body(self) -> Value {
        let id = self.id();
        let choices = (0..)
            .zip(self.choices)
            .map(|(index, choice)| choice.into_reply(index, &self.wanted))
            .collect();
        json::value(&ChatCompletion {
            id,
            object: "chat.completion",
            created: self.context.created_unix,
            model: self.model,
            system_fingerprint: self.context.fingerprint,
            choices,
            usage: self.usage,
        })
    }
}

impl Choice {
    fn into_reply(self, index: u32, wanted: &Wanted) -> super::reply::Choice {
        let is_silent = self.content.is_empty() && !self.calls.is_empty();
        let mut message = Message {
            role: "assistant",
            content: (!is_silent).then_some(self.content),
            refusal: None,
            reasoning_content: (!self.reasoning.is_empty()).then_some(self.reasoning),
            tool_calls: Vec::new(),
            function_call: None,
        };
        self.calls.tell(&mut message, &wanted.calls);
        super::reply::Choice {
            index,
            message,
            logprobs: wanted.logprobs.then(|| Logprobs::new(self.logprobs)),
            finish_reason: self.finish_reason.unwrap_or("stop"),
        }
    }
}

impl Logprobs {
    fn new(content: Vec<Value>) -> Self {
        Self {
            content,
            refusal: None,
        }
    }
}
