//! What the backend says, as events or as a whole message.
//!
//! Invariants: a block is closed before the next opens, each delta has its block's kind, blocks are
//! numbered without gaps, and a message that ends leaves no block open. A stream that fails leaves
//! its block open, as Anthropic does: a client must not take half a tool call for a whole one.

use macmlx_inference::{FinishReason, GenerationEvent, InferenceError, ToolCallPart};
use serde_json::{Map, Value, json};

use super::{
    assembly::Assembly,
    error,
    reply::{ContentBlock, Delta, Message, MessageDelta, StopReason, StreamEvent, Usage},
    signature,
    thinking::Display,
};
use crate::{Frame, Framing, StreamEncoder};

/// Builds the events of one message, or the message.
#[derive(Debug)]
pub struct Encoder {
    id: String,
    display: Display,
    max_tokens: Option<u32>,
    /// Number of the next block.
    next: u32,
    open: Option<Open>,
    has_calls: bool,
    finish: Option<(FinishReason, Option<String>)>,
    /// Takes the events where no stream was asked for.
    assembly: Option<Assembly>,
}

/// The block that deltas go into.
#[derive(Debug)]
enum Open {
    Text,
    /// With the text that the signature is to carry.
    Thinking(String),
    ToolUse,
}

impl Encoder {
    pub(super) fn new(
        id: String,
        wants_stream: bool,
        display: Display,
        max_tokens: Option<u32>,
    ) -> Self {
        Self {
            id,
            display,
            max_tokens,
            next: 0,
            open: None,
            has_calls: false,
            finish: None,
            assembly: (!wants_stream).then(Assembly::default),
        }
    }

    fn events(&mut self, event: GenerationEvent) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        match event {
            GenerationEvent::Started {
                model,
                prompt_tokens,
                cached_tokens,
            } => events.push(StreamEvent::MessageStart {
                message: Message {
                    id: format!("msg_{}", self.id),
                    r#type: "message",
                    role: "assistant",
                    model,
                    content: Vec::new(),
                    stop_reason: None,
                    stop_sequence: None,
                    usage: Usage::of_prompt(prompt_tokens, cached_tokens),
                },
            }),
            GenerationEvent::Prefill { .. } | GenerationEvent::PromptLogprobs { .. } => {}
            GenerationEvent::Text { text, .. } => self.text(text, &mut events),
            GenerationEvent::Reasoning { text, .. } => self.thinking(text, &mut events),
            GenerationEvent::ToolCall { part, .. } => self.tool_call(part, &mut events),
            GenerationEvent::Finished {
                reason,
                stop_sequence,
                ..
            } => {
                self.close(&mut events);
                self.finish = Some((reason, stop_sequence));
            }
            GenerationEvent::Completed { usage, .. } => {
                self.close(&mut events);
                events.push(StreamEvent::MessageDelta {
                    delta: self.delta(usage.completion_tokens),
                    usage: Usage::of(&usage),
                });
                events.push(StreamEvent::MessageStop);
            }
        }
        events
    }

    fn text(&mut self, text: String, events: &mut Vec<StreamEvent>) {
        if text.is_empty() {
            return;
        }
        if !matches!(self.open, Some(Open::Text)) {
            let text = String::new();
            self.open(Open::Text, ContentBlock::Text { text }, events);
        }
        events.push(self.delta_of(Delta::TextDelta { text }));
    }

    fn thinking(&mut self, text: String, events: &mut Vec<StreamEvent>) {
        if text.is_empty() || self.display == Display::None {
            return;
        }
        if !matches!(self.open, Some(Open::Thinking(_))) {
            let block = ContentBlock::Thinking {
                thinking: String::new(),
                signature: String::new(),
            };
            self.open(Open::Thinking(String::new()), block, events);
        }
        match (&mut self.open, self.display) {
            (Some(Open::Thinking(kept)), Display::Omitted) => kept.push_str(&text),
            _ => events.push(self.delta_of(Delta::ThinkingDelta { thinking: text })),
        }
    }

    fn tool_call(&mut self, part: ToolCallPart, events: &mut Vec<StreamEvent>) {
        match part {
            ToolCallPart::Start { id, name } => {
                self.has_calls = true;
                let block = ContentBlock::ToolUse {
                    id,
                    name,
                    input: Map::new(),
                };
                self.open(Open::ToolUse, block, events);
            }
            ToolCallPart::Arguments(partial_json) => {
                if !partial_json.is_empty() && matches!(self.open, Some(Open::ToolUse)) {
                    events.push(self.delta_of(Delta::InputJsonDelta { partial_json }));
                }
            }
            ToolCallPart::End => self.close(events),
        }
    }

    fn open(&mut self, open: Open, content_block: ContentBlock, events: &mut Vec<StreamEvent>) {
        self.close(events);
        self.open = Some(open);
        events.push(StreamEvent::ContentBlockStart {
            index: self.next,
            content_block,
        });
    }

    fn close(&mut self, events: &mut Vec<StreamEvent>) {
        let Some(open) = self.open.take() else {
            return;
        };
        if let Open::Thinking(kept) = open {
            let signature = signature::carrying(&kept);
            events.push(self.delta_of(Delta::SignatureDelta { signature }));
        }
        events.push(StreamEvent::ContentBlockStop { index: self.next });
        self.next += 1;
    }

    fn delta_of(&self, delta: Delta) -> StreamEvent {
        StreamEvent::ContentBlockDelta {
            index: self.next,
            delta,
        }
    }

    fn delta(&mut self, completion_tokens: u32) -> MessageDelta {
        let (reason, stop_sequence) = self.finish.take().unwrap_or((FinishReason::Stop, None));
        let stop_reason = match reason {
            FinishReason::ToolCalls => StopReason::ToolUse,
            FinishReason::Length if self.max_tokens.is_none_or(|max| completion_tokens < max) => {
                StopReason::ModelContextWindowExceeded
            }
            FinishReason::Length => StopReason::MaxTokens,
            FinishReason::Stop if stop_sequence.is_some() => StopReason::StopSequence,
            FinishReason::Stop if self.has_calls => StopReason::ToolUse,
            FinishReason::Stop | FinishReason::Cancelled => StopReason::EndTurn,
        };
        MessageDelta {
            stop_reason,
            stop_sequence,
        }
    }

    fn send(&mut self, events: Vec<StreamEvent>) -> Vec<Frame> {
        match &mut self.assembly {
            Some(assembly) => {
                events.into_iter().for_each(|event| assembly.apply(event));
                Vec::new()
            }
            None => events.into_iter().map(StreamEvent::into_frame).collect(),
        }
    }
}

impl StreamEncoder for Encoder {
    const FRAMING: Framing = Framing::Sse;

    fn encode(&mut self, _prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        let events = self.events(event);
        self.send(events)
    }

    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame> {
        let error = error::mid_stream(error);
        vec![StreamEvent::Error { error }.into_frame()]
    }

    /// A comment is no sign of life to clients: they count events.
    fn heartbeat(&mut self) -> Vec<Frame> {
        vec![StreamEvent::Ping.into_frame()]
    }

    fn into_body(self) -> Value {
        json!(self.assembly.and_then(Assembly::into_message))
    }
}
