//! One turn of the model: what it said, for the conversation, and how it ended.

use macmlx_inference::{
    ContentPart, FinishReason, GenerationEvent, Message, Role, ToolCall, ToolCallPart,
};

/// Gathers a turn while its events go by.
#[derive(Debug, Default)]
pub(super) struct Turn {
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    /// Kept back: they may not be the stream's last.
    finished: Vec<GenerationEvent>,
    is_tool_calls: bool,
    /// The latest call has not ended.
    in_call: bool,
}

impl Turn {
    /// Notes an event; returns it if the caller is to see it now.
    pub(super) fn take(
        &mut self,
        event: GenerationEvent,
        is_first: bool,
    ) -> Option<GenerationEvent> {
        match &event {
            GenerationEvent::Loading { .. }
            | GenerationEvent::Loaded { .. }
            | GenerationEvent::Started { .. } => return is_first.then_some(event),
            GenerationEvent::Completed { .. } => return None,
            GenerationEvent::Finished { reason, .. } => {
                self.is_tool_calls = *reason == FinishReason::ToolCalls;
                self.finished.push(event);
                return None;
            }
            GenerationEvent::Text { text, .. } => self.text.push_str(text),
            GenerationEvent::Reasoning { text, .. } => self.reasoning.push_str(text),
            GenerationEvent::ToolCall { part, .. } => self.take_call(part),
            GenerationEvent::Prefill { .. }
            | GenerationEvent::PromptLogprobs { .. }
            | GenerationEvent::ToolRun { .. } => {}
        }
        Some(event)
    }

    fn take_call(&mut self, part: &ToolCallPart) {
        self.in_call = *part != ToolCallPart::End;
        match part {
            ToolCallPart::Start { id, name } => self.calls.push(ToolCall {
                id: id.clone(),
                name: name.clone(),
                arguments: String::new(),
            }),
            ToolCallPart::Arguments(text) => {
                if let Some(call) = self.calls.last_mut() {
                    call.arguments.push_str(text);
                }
            }
            ToolCallPart::End => {}
        }
    }

    pub(super) fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// Whether it ended with calls, none of them cut, and all of them are ours: who brings tools of its own gets all
    /// calls of a turn back, because it has to answer all of them.
    pub(super) fn is_for_us(&self, is_ours: impl Fn(&str) -> bool) -> bool {
        self.is_tool_calls
            && !self.in_call
            && !self.calls.is_empty()
            && self.calls.iter().all(|call| is_ours(&call.name))
    }

    /// What was kept back.
    pub(super) fn ending(self) -> Vec<GenerationEvent> {
        self.finished
    }

    /// The turn as a message; `begun` is the one that it continued.
    pub(super) fn into_message(self, begun: Option<Message>) -> Message {
        let mut message = begun.unwrap_or_else(|| Message {
            content: Vec::new(),
            ..Message::text(Role::Assistant, "")
        });
        if !self.text.is_empty() {
            message.content.push(ContentPart::Text(self.text));
        }
        if !self.reasoning.is_empty() {
            message
                .reasoning
                .get_or_insert_default()
                .push_str(&self.reasoning);
        }
        message.tool_calls.extend(self.calls);
        message
    }
}
