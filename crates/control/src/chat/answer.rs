//! An answer as it grows: events of the backend in, events for the reader and messages to store out.
//!
//! Invariant: at most one message is being written. When a message's calls are all over, it is at
//! rest and stored; the next word of the model begins another.

use std::time::{Duration, Instant};

use macmlx_inference::{
    FinishReason, GenerationEvent, Timings, ToolCallPart, ToolRun, ToolRunEnd, Usage,
};
use macmlx_store::conversations::{
    AnswerTimings, CallState, Ending, Message, Role, TokenCounts, ToolCall,
};

use super::event::{ChatEvent, ChatToolCall};
use crate::conversations::id_text;

/// One thing to do about an event; the list is in order.
#[derive(Debug)]
pub(super) enum Step {
    Tell(ChatEvent),
    /// A message is at rest.
    Store(Box<Message>),
}

/// Whose tool a name is.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownTool {
    pub(super) server: Option<String>,
    pub(super) title: Option<String>,
}

pub(super) struct Answer<'a> {
    model: String,
    begun: Instant,
    /// Looks up a tool by the name that the model knows it by.
    tool: &'a (dyn Fn(&str) -> KnownTool + Send + Sync),
    cached_tokens: u32,
    first_token: Option<Instant>,
    /// The message that is being written.
    draft: Option<Draft>,
    /// The one before it, at rest.
    stored: Option<Message>,
    reason: Ending,
    is_over: bool,
}

struct Draft {
    message: Message,
    reasoning_since: Option<Instant>,
    /// Calls that are not over yet.
    open_calls: usize,
}

impl<'a> Answer<'a> {
    pub(super) fn new(
        model: String,
        begun: Instant,
        tool: &'a (dyn Fn(&str) -> KnownTool + Send + Sync),
    ) -> Self {
        Self {
            model,
            begun,
            tool,
            cached_tokens: 0,
            first_token: None,
            draft: None,
            stored: None,
            reason: Ending::Stop,
            is_over: false,
        }
    }

    /// Begins the first message.
    pub(super) fn begin(&mut self) -> ChatEvent {
        let mut message = Message::new(Role::Assistant, "");
        message.model = Some(self.model.clone());
        let event = ChatEvent::AssistantStarted {
            id: id_text(message.id),
            model: self.model.clone(),
        };
        self.draft = Some(Draft {
            message,
            reasoning_since: None,
            open_calls: 0,
        });
        event
    }

    /// What an event of the backend means.
    pub(super) fn take(&mut self, event: GenerationEvent, now: Instant) -> Vec<Step> {
        match event {
            GenerationEvent::Started {
                model,
                prompt_tokens,
                cached_tokens,
            } => self.start(model, prompt_tokens, cached_tokens),
            GenerationEvent::Prefill { processed, total } => {
                let mut steps = self.go_on();
                steps.push(Step::Tell(ChatEvent::Prefill {
                    processed,
                    total,
                    cached: self.cached_tokens,
                }));
                steps
            }
            // The run tells of loading; log probabilities are never asked for here.
            GenerationEvent::Loading { .. }
            | GenerationEvent::Loaded { .. }
            | GenerationEvent::PromptLogprobs { .. } => Vec::new(),
            GenerationEvent::Text { text, .. } => self.text(text, now),
            GenerationEvent::Reasoning { text, .. } => self.reasoning(text, now),
            GenerationEvent::ToolCall { part, .. } => self.call(part, now),
            GenerationEvent::ToolRun { id, run, .. } => self.run(&id, run),
            GenerationEvent::Finished { reason, .. } => {
                self.reason = match reason {
                    FinishReason::Stop => Ending::Stop,
                    FinishReason::Length => Ending::Length,
                    FinishReason::ToolCalls => Ending::ToolCalls,
                    FinishReason::Cancelled => Ending::Cancelled,
                };
                Vec::new()
            }
            GenerationEvent::Completed { usage, timings } => self.complete(usage, timings, now),
        }
    }

    /// The answer ends before its end; the message to store, unless all are at rest.
    pub(super) fn break_off(
        &mut self,
        reason: Ending,
        error: Option<String>,
        now: Instant,
    ) -> Option<Message> {
        if std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        let mut message = self.rest(now)?;
        message.finish_reason = Some(reason);
        message.error = error;
        Some(message)
    }

    fn start(&mut self, model: String, total: u32, cached: u32) -> Vec<Step> {
        self.cached_tokens = cached;
        if let Some(draft) = &mut self.draft {
            draft.message.model = Some(model.clone());
        }
        self.model = model;
        vec![Step::Tell(ChatEvent::Prefill {
            processed: cached,
            total,
            cached,
        })]
    }

    fn text(&mut self, text: String, now: Instant) -> Vec<Step> {
        if text.is_empty() {
            return Vec::new();
        }
        let mut steps = self.go_on();
        self.first_token.get_or_insert(now);
        if let Some(draft) = &mut self.draft {
            draft.end_reasoning(now);
            draft.message.content.push_str(&text);
        }
        steps.push(Step::Tell(ChatEvent::Text { text }));
        steps
    }

    fn reasoning(&mut self, text: String, now: Instant) -> Vec<Step> {
        if text.is_empty() {
            return Vec::new();
        }
        let mut steps = self.go_on();
        self.first_token.get_or_insert(now);
        if let Some(draft) = &mut self.draft {
            draft.reasoning_since.get_or_insert(now);
            let all = draft.message.reasoning.get_or_insert_default();
            all.push_str(&text);
        }
        steps.push(Step::Tell(ChatEvent::Reasoning { text }));
        steps
    }

    fn call(&mut self, part: ToolCallPart, now: Instant) -> Vec<Step> {
        let mut steps = self.go_on();
        self.first_token.get_or_insert(now);
        let Some(draft) = &mut self.draft else {
            return steps;
        };
        let event = match part {
            ToolCallPart::Start { id, name } => {
                draft.end_reasoning(now);
                draft.open_calls += 1;
                let KnownTool { server, title } = (self.tool)(&name);
                draft.message.tool_calls.push(ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                    server: server.clone(),
                    // Until it is over.
                    state: CallState::Cancelled,
                    result: None,
                    duration_ms: None,
                    other: serde_json::Map::new(),
                });
                let call = ChatToolCall {
                    id,
                    name,
                    server,
                    title,
                };
                Some(ChatEvent::ToolCall { call })
            }
            ToolCallPart::Arguments(text) => draft.message.tool_calls.last_mut().map(|call| {
                call.arguments.push_str(&text);
                let id = call.id.clone();
                ChatEvent::ToolArguments { id, text }
            }),
            ToolCallPart::End => {
                draft
                    .message
                    .tool_calls
                    .last()
                    .map(|call| ChatEvent::ToolCallEnd {
                        id: call.id.clone(),
                    })
            }
        };
        steps.extend(event.map(Step::Tell));
        steps
    }

    fn run(&mut self, id: &str, run: ToolRun) -> Vec<Step> {
        let Some(draft) = &mut self.draft else {
            return Vec::new();
        };
        let calls = &mut draft.message.tool_calls;
        let Some(call) = calls.iter_mut().find(|call| call.id == id) else {
            return Vec::new();
        };
        let id = call.id.clone();
        match run {
            ToolRun::ApprovalNeeded {
                server, arguments, ..
            } => {
                call.server = Some(server.clone());
                let name = call.name.clone();
                vec![Step::Tell(ChatEvent::ToolApproval {
                    id,
                    name,
                    server,
                    arguments,
                })]
            }
            ToolRun::Began { server, .. } => {
                call.server = Some(server);
                vec![Step::Tell(ChatEvent::ToolStarted { id })]
            }
            ToolRun::Ended {
                end,
                content,
                duration,
            } => {
                call.state = match end {
                    ToolRunEnd::Done => CallState::Done,
                    ToolRunEnd::Failed => CallState::Failed,
                    ToolRunEnd::Denied => CallState::Denied,
                };
                call.result = Some(content.clone());
                call.duration_ms = Some(milliseconds(duration));
                let mut steps = vec![Step::Tell(ChatEvent::ToolResult {
                    id,
                    state: call.state,
                    content,
                    duration_ms: milliseconds(duration),
                })];
                draft.open_calls = draft.open_calls.saturating_sub(1);
                if draft.open_calls == 0 {
                    steps.extend(self.round_over());
                }
                steps
            }
        }
    }

    /// All calls of the message are over: it is at rest.
    fn round_over(&mut self) -> Option<Step> {
        let mut message = self.draft.take()?.message;
        message.finish_reason = Some(Ending::ToolCalls);
        self.stored = Some(message.clone());
        // What the next turn takes from the cache is not told.
        self.cached_tokens = 0;
        Some(Step::Store(Box::new(message)))
    }

    /// A message to write into.
    fn go_on(&mut self) -> Vec<Step> {
        if self.draft.is_some() {
            return Vec::new();
        }
        vec![Step::Tell(self.begin())]
    }

    fn complete(&mut self, usage: Usage, timings: Timings, now: Instant) -> Vec<Step> {
        let usage = TokenCounts {
            prompt_tokens: usage.prompt_tokens,
            cached_tokens: usage.cached_tokens,
            completion_tokens: usage.completion_tokens,
            reasoning_tokens: usage.reasoning_tokens,
        };
        let timings = AnswerTimings {
            load_ms: milliseconds(timings.load),
            queue_ms: milliseconds(timings.queue),
            prefill_ms: milliseconds(timings.prefill),
            decode_ms: milliseconds(timings.decode),
            ttft_ms: self
                .first_token
                .map(|first| milliseconds(first.duration_since(self.begun))),
            tokens_per_second: tokens_per_second(usage.completion_tokens, timings.decode),
        };
        let reason = self.reason;
        self.is_over = true;
        let mut steps = Vec::new();
        if let Some(mut message) = self.rest(now) {
            message.finish_reason = Some(reason);
            message.token_count = Some(usage.completion_tokens);
            message.usage = Some(usage);
            message.timings = Some(timings);
            steps.push(Step::Store(Box::new(message)));
        }
        steps.push(Step::Tell(ChatEvent::Finished {
            reason,
            usage,
            timings,
        }));
        steps
    }

    /// The message that the end of the answer is told in.
    fn rest(&mut self, now: Instant) -> Option<Message> {
        match self.draft.take() {
            Some(mut draft) => {
                draft.end_reasoning(now);
                Some(draft.message)
            }
            None => self.stored.take(),
        }
    }
}

impl Draft {
    fn end_reasoning(&mut self, now: Instant) {
        if let Some(since) = self.reasoning_since.take() {
            let seconds = self.message.reasoning_seconds.get_or_insert(0.0);
            *seconds += now.duration_since(since).as_secs_f64();
        }
    }
}

/// The first token comes out of the prefill.
fn tokens_per_second(tokens: u32, decode: Duration) -> Option<f64> {
    (tokens > 1 && !decode.is_zero()).then(|| f64::from(tokens - 1) / decode.as_secs_f64())
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
