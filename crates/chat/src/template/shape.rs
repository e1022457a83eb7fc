//! Messages and tools in the shape `transformers` gives them to templates, with the variations
//! that single templates insist on.

use macmlx_inference::{ContentPart, Message, ToolCall, ToolDefinition};
use serde_json::{Value, json};

/// What a template expects where templates differ. Found by rendering a probe, not by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent variation"
)]
pub(super) struct Shape {
    /// Content is always a list of parts.
    typed_content: bool,
    /// A turn of nothing but tool calls has no content rather than an empty one.
    null_content: bool,
    /// Arguments of a tool call are JSON text rather than an object.
    text_arguments: bool,
    /// Ids of tool calls must be nine letters or digits (Mistral).
    short_ids: bool,
}

const NEEDLE: &str = "needle-in-a-haystack";

impl Shape {
    /// Tries what a template renders. `render` gives `None` when it fails.
    pub(super) fn probe(render: impl Fn(&[Value], &[Value]) -> Option<String>) -> Self {
        let mut shape = Self::default();
        let text = json!({"role": "user", "content": NEEDLE});
        let typed = json!({"role": "user", "content": [{"type": "text", "text": NEEDLE}]});
        let shows = |message: &Value| {
            render(std::slice::from_ref(message), &[]).is_some_and(|text| text.contains(NEEDLE))
        };
        shape.typed_content = !shows(&text) && shows(&typed);

        let tools = tools(&[ToolDefinition {
            name: "probe".into(),
            description: Some("Probe.".into()),
            parameters: json!({"type": "object", "properties": {"key": {"type": "string"}}}),
            strict: false,
        }]);
        let call = Message {
            content: Vec::new(),
            tool_calls: vec![ToolCall {
                id: "call_0123456789".into(),
                name: "probe".into(),
                arguments: format!(r#"{{"key": "{NEEDLE}"}}"#),
            }],
            ..Message::text(macmlx_inference::Role::Assistant, "")
        };
        let result = Message {
            tool_call_id: Some("call_0123456789".into()),
            name: Some("probe".into()),
            ..Message::text(macmlx_inference::Role::Tool, "done")
        };
        let user = Message::text(macmlx_inference::Role::User, "go");
        let turns = [user, call, result];
        (0..8)
            .map(|bits| Self {
                null_content: bits & 1 != 0,
                text_arguments: bits & 2 != 0,
                short_ids: bits & 4 != 0,
                ..shape
            })
            .find(|shape| {
                // Quoted as Python quotes it, the object was printed where text was meant.
                let printed = format!("'{NEEDLE}'");
                render(&shape.messages(&turns), &tools)
                    .is_some_and(|text| text.contains(NEEDLE) && !text.contains(&printed))
            })
            .unwrap_or(shape)
    }

    /// Messages as the template expects them.
    pub(super) fn messages(self, messages: &[Message]) -> Vec<Value> {
        messages
            .iter()
            .map(|message| self.message(message))
            .collect()
    }

    fn message(self, message: &Message) -> Value {
        let text = text_of(message);
        let content = if text.is_empty() && !message.tool_calls.is_empty() && self.null_content {
            Value::Null
        } else if self.typed_content {
            json!([{"type": "text", "text": text}])
        } else {
            text.into()
        };
        let mut value = json!({"role": message.role, "content": content});
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
        let parsed = if self.text_arguments {
            None
        } else {
            // Text that is no object is given as it stands.
            serde_json::from_str(&call.arguments)
                .ok()
                .filter(Value::is_object)
        };
        json!({
            "id": self.id(&call.id),
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": parsed.unwrap_or_else(|| call.arguments.as_str().into()),
            },
        })
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
fn text_of(message: &Message) -> String {
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
