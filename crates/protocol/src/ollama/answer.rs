//! An answer as it grows, for chat and generate alike.

use std::{marker::PhantomData, time::Duration};

use macmlx_inference::{
    ContentPart, FinishReason, GenerationEvent, InferenceError, Message, Role, Timings,
    TokenLogprob, ToolCallPart, Usage, rfc3339,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{context, error};
use crate::{Context, Frame, Framing, StreamEncoder, json, openai::logprobs};

/// A call the model made.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ollama::ToolCall)]
pub struct ToolCall {
    pub id: String,
    pub function: ToolCallFunction,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ollama::ToolCallFunction)]
pub struct ToolCallFunction {
    /// Index among this answer's calls, from 0.
    pub index: u32,
    pub name: String,
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
}

/// Counts of tokens, and times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ollama::Metrics)]
pub struct Metrics {
    pub total_duration: u64,
    pub load_duration: u64,
    pub prompt_eval_count: u32,
    pub prompt_eval_duration: u64,
    pub eval_count: u32,
    pub eval_duration: u64,
}

impl Metrics {
    fn of(usage: &Usage, timings: &Timings) -> Self {
        Self {
            total_duration: nanoseconds(
                timings.load + timings.queue + timings.prefill + timings.decode,
            ),
            load_duration: nanoseconds(timings.load),
            prompt_eval_count: usage.prompt_tokens,
            prompt_eval_duration: nanoseconds(timings.prefill),
            eval_count: usage.completion_tokens,
            eval_duration: nanoseconds(timings.decode),
        }
    }
}

/// A time as all of Ollama's replies give it.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What all frames of an answer begin with.
#[derive(Debug, Clone)]
pub struct Head {
    pub model: String,
    /// RFC 3339.
    pub created_at: String,
}

impl Head {
    pub(super) fn new(model: String, created_unix: u64) -> Self {
        Self {
            model,
            created_at: rfc3339(created_unix),
        }
    }
}

/// What a frame adds to the answer; the whole answer is the sum.
#[derive(Debug, Default)]
pub struct Delta {
    pub content: String,
    pub thinking: String,
    pub tool_calls: Vec<ToolCall>,
    /// Log probabilities, in OpenAI's form.
    pub logprobs: Vec<Value>,
}

impl Delta {
    fn is_empty(&self) -> bool {
        self.content.is_empty()
            && self.thinking.is_empty()
            && self.tool_calls.is_empty()
            && self.logprobs.is_empty()
    }
}

/// What the last frame says.
#[derive(Debug)]
pub struct End {
    pub done_reason: &'static str,
    /// `None`: nothing was generated.
    pub metrics: Option<Metrics>,
    /// The conversation so far, for clients that hand it back.
    pub context: Option<Vec<i32>>,
}

/// How one endpoint writes an answer or a part of one.
pub trait Shape: Send + 'static {
    type Reply: Serialize;

    fn reply(head: Head, delta: Delta, end: Option<End>) -> Self::Reply;
}

/// Builds frames, or one reply of the same shape that holds it all.
#[derive(Debug)]
pub struct Encoder<S> {
    head: Head,
    wants_stream: bool,
    wants_logprobs: bool,
    /// The turns before the answer, where the client is to get them back in the last frame. Then
    /// the text is kept also when it is streamed.
    conversation: Option<Vec<Message>>,
    kept: Delta,
    call: Option<OpenCall>,
    calls: u32,
    done_reason: &'static str,
    end: Option<End>,
    shape: PhantomData<fn() -> S>,
}

/// A call that is being written.
#[derive(Debug)]
struct OpenCall {
    id: String,
    name: String,
    arguments: String,
}

impl OpenCall {
    /// Arguments are an object in this API. What is none, because the model made a mistake, is given
    /// as text.
    fn close(self, index: u32) -> Delta {
        match macmlx_json::read_arguments(&self.arguments) {
            Ok(arguments) => Delta {
                tool_calls: vec![ToolCall {
                    id: self.id,
                    function: ToolCallFunction {
                        index,
                        name: self.name,
                        arguments,
                    },
                }],
                ..Delta::default()
            },
            Err(_) => Delta {
                content: format!(
                    "{{\"name\": {}, \"arguments\": {}}}",
                    Value::from(self.name),
                    self.arguments
                ),
                ..Delta::default()
            },
        }
    }
}

impl<S: Shape> Encoder<S> {
    pub(super) fn new(
        model: String,
        context: &Context,
        wants_stream: bool,
        wants_logprobs: bool,
        conversation: Option<Vec<Message>>,
    ) -> Self {
        Self {
            head: Head::new(model, context.created_unix),
            wants_stream,
            wants_logprobs,
            conversation,
            kept: Delta::default(),
            call: None,
            calls: 0,
            done_reason: "stop",
            end: None,
            shape: PhantomData,
        }
    }

    fn say(&mut self, delta: Delta) -> Vec<Frame> {
        if delta.is_empty() {
            return Vec::new();
        }
        if self.wants_stream {
            if self.conversation.is_some() {
                self.kept.content.push_str(&delta.content);
                self.kept.thinking.push_str(&delta.thinking);
            }
            return self.frame(delta, None);
        }
        self.kept.content.push_str(&delta.content);
        self.kept.thinking.push_str(&delta.thinking);
        self.kept.tool_calls.extend(delta.tool_calls);
        self.kept.logprobs.extend(delta.logprobs);
        Vec::new()
    }

    fn frame(&self, delta: Delta, end: Option<End>) -> Vec<Frame> {
        let reply = S::reply(self.head.clone(), delta, end);
        vec![Frame::data(json::text(&reply))]
    }

    fn logprobs(&self, tokens: &[TokenLogprob]) -> Vec<Value> {
        if self.wants_logprobs {
            logprobs::chat_entries(tokens)
        } else {
            Vec::new()
        }
    }

    fn call(&mut self, part: ToolCallPart) -> Delta {
        match part {
            ToolCallPart::Start { id, name } => {
                self.call = Some(OpenCall {
                    id,
                    name,
                    arguments: String::new(),
                });
                Delta::default()
            }
            ToolCallPart::Arguments(text) => {
                if let Some(call) = &mut self.call {
                    call.arguments.push_str(&text);
                }
                Delta::default()
            }
            ToolCallPart::End => self.close_call(),
        }
    }

    fn close_call(&mut self) -> Delta {
        let Some(call) = self.call.take() else {
            return Delta::default();
        };
        let delta = call.close(self.calls);
        self.calls += delta.tool_calls.len() as u32;
        delta
    }

    fn complete(&mut self, usage: &Usage, timings: &Timings) -> Vec<Frame> {
        let end = End {
            done_reason: self.done_reason,
            metrics: Some(Metrics::of(usage, timings)),
            context: self.conversation.take().map(|mut conversation| {
                conversation.push(Message {
                    role: Role::Assistant,
                    content: vec![ContentPart::Text(self.kept.content.clone())],
                    reasoning: Some(self.kept.thinking.clone()).filter(|text| !text.is_empty()),
                    tool_calls: Vec::new(),
                    tool_call_id: None,
                    name: None,
                });
                context::encode(&conversation)
            }),
        };
        if self.wants_stream {
            return self.frame(Delta::default(), Some(end));
        }
        self.end = Some(end);
        Vec::new()
    }
}

impl<S: Shape> StreamEncoder for Encoder<S> {
    const FRAMING: Framing = Framing::NdJson;

    fn encode(&mut self, _prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        let delta = match event {
            GenerationEvent::Started { model, .. } => {
                self.head.model = model;
                return Vec::new();
            }
            GenerationEvent::Loading { .. }
            | GenerationEvent::Loaded { .. }
            | GenerationEvent::Prefill { .. }
            | GenerationEvent::PromptLogprobs { .. }
            | GenerationEvent::ToolRun { .. } => {
                return Vec::new();
            }
            GenerationEvent::Text { text, tokens, .. } => Delta {
                content: text,
                logprobs: self.logprobs(&tokens),
                ..Delta::default()
            },
            GenerationEvent::Reasoning { text, tokens, .. } => Delta {
                thinking: text,
                logprobs: self.logprobs(&tokens),
                ..Delta::default()
            },
            GenerationEvent::ToolCall { part, tokens, .. } => Delta {
                logprobs: self.logprobs(&tokens),
                ..self.call(part)
            },
            GenerationEvent::Finished { reason, .. } => {
                self.done_reason = match reason {
                    FinishReason::Length => "length",
                    FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled => {
                        "stop"
                    }
                };
                // A call that was cut cannot be said here: it has no whole arguments, and what came of
                // them is no text.
                self.call = None;
                return Vec::new();
            }
            GenerationEvent::Completed { usage, timings } => {
                return self.complete(&usage, &timings);
            }
        };
        self.say(delta)
    }

    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame> {
        vec![Frame::data(error::mid_stream(error).to_string())]
    }

    /// NDJSON has no comments; a frame that adds nothing keeps a client from giving up.
    fn heartbeat(&mut self) -> Vec<Frame> {
        self.frame(Delta::default(), None)
    }

    fn into_body(self) -> Value {
        json::value(&S::reply(self.head, self.kept, self.end))
    }
}
