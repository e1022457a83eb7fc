//! Messages and tools in the shape `transformers` gives them to templates, with the variations
//! that single templates insist on.

use macmlx_inference::{ContentPart, Message, ToolCall, ToolDefinition};
use serde_json::{Value, json};

/// What a template expects where templates differ. Found by rendering probes, not by name, and
/// once for a template, so that a conversation that grows keeps its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent variation"
)]
pub(super) struct Shape {
    /// Content is always a list of parts.
    pub(super) typed_content: bool,
    /// Content of a turn of nothing but tool calls.
    pub(super) call_content: CallContent,
    /// Arguments of a tool call are JSON text rather than an object.
    pub(super) text_arguments: bool,
    /// Arguments that are no object are wrapped into one.
    pub(super) wraps_arguments: bool,
    /// Ids of tool calls must be nine letters or digits (Mistral).
    pub(super) short_ids: bool,

    /// A first system turn becomes the beginning of the first user turn.
    pub(super) folds_system: bool,
    /// System turns at the start become one.
    pub(super) joins_systems: bool,
    /// System turns after the start become marked user turns.
    pub(super) marks_systems: bool,
    /// Where no user speaks, the last system turn becomes a user turn.
    pub(super) needs_user: bool,
    /// User turns in a row become one.
    pub(super) joins_users: bool,
    /// Assistant turns in a row become one.
    pub(super) joins_assistants: bool,
    /// A user turn is put before an assistant turn that opens the conversation.
    pub(super) opens_with_user: bool,
    /// Tool calls and results are told in words.
    pub(super) tells_tools: bool,
    /// Several calls of a turn become turns of their own, each before its result.
    pub(super) single_calls: bool,
    /// Where text beside tool calls goes.
    pub(super) text_beside_calls: TextBesideCalls,
    /// A user turn after a tool result becomes the end of that result.
    pub(super) joins_users_to_results: bool,
}

/// Content of a turn of nothing but tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum CallContent {
    #[default]
    Empty,
    Absent,
    Null,
}

/// Where text beside tool calls goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TextBesideCalls {
    /// It stays.
    #[default]
    Beside,
    /// It goes into a turn of its own before the calls.
    Before,
    /// It goes to the beginning of the first result.
    Result,
}

impl Shape {
    /// Messages as the template expects them.
    pub(super) fn messages(self, messages: &[Message]) -> Vec<Value> {
        self.turns(messages)
            .iter()
            .map(|message| self.message(message))
            .collect()
    }

    fn message(self, message: &Message) -> Value {
        let text = text_of(message);
        let is_call = text.is_empty() && !message.tool_calls.is_empty();
        let mut value = json!({"role": message.role});
        // Some templates know it by an older name.
        if let Some(reasoning) = &message.reasoning {
            value["thinking"] = reasoning.as_str().into();
        }
        match self.call_content {
            CallContent::Absent if is_call => {}
            CallContent::Null if is_call => value["content"] = Value::Null,
            _ if self.typed_content => value["content"] = json!([{"type": "text", "text": text}]),
            _ => value["content"] = text.into(),
        }
        if let Some(reasoning) = &message.reasoning {
            value["reasoning_content"] = reasoning.as_str().into();
        }
        if !message.tool_calls.is_empty() {
            value["tool_calls"] = message
                .tool_calls
                .iter()
                .map(|call| self.tool_call(call))
                .collect();
        }
        if let Some(id) = &message.tool_call_id {
            value["tool_call_id"] = self.id(id).into();
        }
        if let Some(name) = &message.name {
            value["name"] = name.as_str().into();
        }
        value
    }

    fn tool_call(self, call: &ToolCall) -> Value {
        json!({
            "id": self.id(&call.id),
            "type": "function",
            "function": {"name": call.name, "arguments": self.arguments(&call.arguments)},
        })
    }

    fn arguments(self, text: &str) -> Value {
        // What clients send for a call without arguments.
        let text = if text.trim().is_empty() { "{}" } else { text };
        if self.text_arguments {
            return text.into();
        }
        match macmlx_json::read_object(text) {
            Ok(object) => Value::Object(object),
            _ if self.wraps_arguments => json!({"arguments": text}),
            _ => text.into(),
        }
    }

    /// The id, or nine letters and digits made from it, always the same ones.
    fn id(self, id: &str) -> String {
        let fits = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !self.short_ids || fits {
            return id.into();
        }
        // FNV-1a.
        let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (0..9)
            .map(|_| {
                let digit = (hash % 36) as u32;
                hash /= 36;
                char::from_digit(digit, 36).unwrap_or('0')
            })
            .collect()
    }
}

/// What a text model reads of a turn.
pub(super) fn text_of(message: &Message) -> String {
    message
        .content
        .iter()
        .map(|part| match part {
            ContentPart::Text(text) => text.as_str(),
            ContentPart::Image(_) => "[image: this model does not see images]",
        })
        .collect()
}

/// Tools as JSON schema functions.
pub(super) fn tools(tools: &[ToolDefinition]) -> Vec<Value> {
    tools
        .iter()
        .map(|tool| {
            let mut function = json!({"name": tool.name});
            if let Some(description) = &tool.description {
                function["description"] = description.as_str().into();
            }
            function["parameters"] = tool.parameters.clone();
            json!({"type": "function", "function": function})
        })
        .collect()
}
