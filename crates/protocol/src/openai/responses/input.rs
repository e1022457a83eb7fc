//! What a client sends or replays, as turns of a conversation.
//!
//! A turn of the assistant is a run of items: thoughts, text and calls between two turns of others.
//! Results come after their calls. Items of tools that a provider runs itself (searches, files,
//! computers, hosted shells) say nothing to a model that has no such tools and are left out.

use macmlx_inference::{ContentPart, Message, Role, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    content::Content,
    freeform, sealed,
    tools::{self, Toolbox},
};
use crate::{Error, json::fields_at, open_calls::OpenCalls, parts, thought};

/// Reads items one after another.
#[derive(Debug, Default)]
pub(super) struct Turns {
    messages: Vec<Message>,
    open_calls: OpenCalls,
    /// The item before was a message of the assistant.
    has_just_spoken: bool,
    toolbox: Toolbox,
}

#[derive(Debug, Deserialize)]
struct MessageItem {
    role: String,
    content: Option<Content>,
}

#[derive(Debug, Deserialize)]
struct CallItem {
    call_id: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    arguments: Option<Value>,
    input: Option<String>,
}

#[derive(Debug, Deserialize)]
struct OutputItem {
    call_id: Option<String>,
    output: Option<Content>,
    tools: Option<Vec<Value>>,
}

/// What an item is, by its `type` or by the fields of one that has none.
pub(super) fn kind<'a>(item: &'a Value, path: &str) -> Result<&'a str, Error> {
    match item.get("type") {
        Some(Value::String(kind)) => Ok(kind),
        None | Some(Value::Null) if item.get("role").is_some() => Ok("message"),
        None | Some(Value::Null) if item.get("id").is_some() => Ok("item_reference"),
        _ => {
            let param = if item.is_object() {
                format!("{path}.type")
            } else {
                path.to_owned()
            };
            let message = format!("{param}: input items are objects with a `type`");
            Err(Error::invalid(param, message))
        }
    }
}

impl Turns {
    pub(super) fn new(toolbox: Toolbox) -> Self {
        Self {
            toolbox,
            ..Self::default()
        }
    }

    /// Turns and tools, once all items are read.
    pub(super) fn into_parts(self) -> (Vec<Message>, Toolbox) {
        (self.messages, self.toolbox)
    }

    /// Adds what the model is told before anything else.
    pub(super) fn instruct(&mut self, instructions: &str) {
        self.messages
            .push(Message::text(Role::System, instructions));
    }

    /// Adds an item found at `path`.
    pub(super) fn read(&mut self, item: &Value, path: &str) -> Result<(), Error> {
        let kind = kind(item, path)?;
        let had_just_spoken = std::mem::take(&mut self.has_just_spoken);
        match kind {
            "message" => self.message(item, path, had_just_spoken),
            "reasoning" => {
                self.think(&thought(item, path)?);
                Ok(())
            }
            "tool_search_call" | "tool_search_output" if is_hosted(item) => {
                let tools = item.get("tools").and_then(Value::as_array);
                self.toolbox
                    .load(tools.map_or(&[], Vec::as_slice), &format!("{path}.tools"))
            }
            "function_call" | "custom_tool_call" | "tool_search_call" => {
                self.call(fields_at(item, path)?, kind, path)
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.output(fields_at(item, path)?, path)
            }
            "additional_tools" => {
                let tools = item.get("tools").and_then(Value::as_array);
                let tools = tools.ok_or_else(|| missing(path, "tools"))?;
                self.toolbox.declare(tools, &format!("{path}.tools"))
            }
            // What these hold is lost on a model that cannot open them, and with it the conversation.
            "compaction" | "compaction_trigger" => Err(Error::unsupported(
                path,
                "conversations are not compacted here, and what was compacted elsewhere cannot be read",
            )),
            "item_reference" => Err(missing(path, "type")),
            // A part of a message where a message belongs.
            "text" | "input_text" | "input_image" | "image_url" => {
                let turn = json!({"role": "user", "content": [item]});
                self.message(&turn, path, false)
            }
            "tool_use" | "tool_result" => Err(Error::unsupported(
                path,
                "send calls as `function_call` items and results as `function_call_output` items",
            )),
            // What only a provider's own tools understand.
            _ => Ok(()),
        }
    }

    fn message(&mut self, given: &Value, path: &str, had_just_spoken: bool) -> Result<(), Error> {
        let item: MessageItem = fields_at(given, path)?;
        if given
            .get("tool_calls")
            .is_some_and(|calls| !is_empty(calls))
        {
            return Err(Error::unsupported(
                format!("{path}.tool_calls"),
                "send each call as an item of type `function_call`",
            ));
        }
        let role = match item.role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" | "function" => {
                return Err(Error::unsupported(
                    format!("{path}.role"),
                    "the result of a tool is an item of type `function_call_output`",
                ));
            }
            other => {
                let param = format!("{path}.role");
                let message =
                    format!("{param} is system, developer, user or assistant, not `{other}`");
                return Err(Error::invalid(param, message));
            }
        };
        let thinks = role == Role::Assistant;
        let content = match item.content {
            Some(content) => content.read(&format!("{path}.content"), thinks)?,
            None if thinks => parts::Content::default(),
            None => return Err(missing(path, "content")),
        };
        if thinks {
            let of_turn = thought::of_turn(given, path)?;
            // Some clients replay a thought in both places.
            if !content.reasoning.contains(&of_turn) {
                self.think(&of_turn);
            }
            self.think(&content.reasoning);
        }
        let mut message = Message::text(role, "");
        message.content = content.parts;
        if role == Role::Assistant && !had_just_spoken {
            self.assistant().content.append(&mut message.content);
        } else {
            self.messages.push(message);
        }
        self.has_just_spoken = role == Role::Assistant;
        Ok(())
    }

    fn call(&mut self, item: CallItem, kind: &str, path: &str) -> Result<(), Error> {
        let name = if kind == "tool_search_call" {
            tools::SEARCH.to_owned()
        } else {
            let name = present(item.name, path, "name")?;
            tools::model_name(item.namespace.as_deref(), &name)
        };
        let arguments = match (kind, item.arguments) {
            ("custom_tool_call", _) => {
                let input = item.input.ok_or_else(|| missing(path, "input"))?;
                freeform::arguments(&input)
            }
            (_, None | Some(Value::Null)) => "{}".to_owned(),
            (_, Some(Value::String(text))) if text.trim().is_empty() => "{}".to_owned(),
            (_, Some(Value::String(text))) => text,
            // Some clients replay the object itself.
            (_, Some(value)) => value.to_string(),
        };
        let mut call = ToolCall {
            // A call without an id gets one by its place.
            id: item.call_id.unwrap_or_default(),
            name,
            arguments,
        };
        if self.assistant().tool_calls.is_empty() {
            self.open_calls.begin_turn();
        }
        self.open_calls.add(&mut call);
        self.assistant().tool_calls.push(call);
        Ok(())
    }

    fn output(&mut self, item: OutputItem, path: &str) -> Result<(), Error> {
        let mut message = Message {
            tool_call_id: item.call_id,
            ..Message::text(Role::Tool, "")
        };
        if !self.open_calls.answer(&mut message) {
            let id = message.tool_call_id.as_deref();
            return Err(self.open_calls.orphan(id, &format!("{path}.call_id"), path));
        }
        message.content = match (item.output, item.tools) {
            (Some(output), _) => output.read_lines(&format!("{path}.output"))?,
            (None, Some(tools)) => {
                self.toolbox.load(&tools, &format!("{path}.tools"))?;
                let found = Value::Array(tools).to_string();
                vec![ContentPart::Text(found)]
            }
            (None, None) => return Err(missing(path, "output")),
        };
        self.messages.push(message);
        Ok(())
    }

    /// Adds to the thoughts of the assistant's turn.
    fn think(&mut self, text: &str) {
        if !text.is_empty() {
            let turn = self.assistant();
            turn.reasoning.get_or_insert_default().push_str(text);
        }
    }

    /// The assistant's turn that is going on, or a new one.
    fn assistant(&mut self) -> &mut Message {
        let is_going_on = self
            .messages
            .last()
            .is_some_and(|message| message.role == Role::Assistant);
        if !is_going_on {
            let mut message = Message::text(Role::Assistant, "");
            message.content.clear();
            self.messages.push(message);
        }
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }
}

/// A search for tools that the provider made; its calls have no id.
fn is_hosted(item: &Value) -> bool {
    item.get("call_id").is_none_or(Value::is_null)
}

/// The text of a thought, empty where only another server could read it.
fn thought(item: &Value, path: &str) -> Result<String, Error> {
    let sealed = item.get("encrypted_content").and_then(Value::as_str);
    match sealed.and_then(sealed::open) {
        Some(text) => Ok(text),
        // The whole thought says more than its summary.
        None => match thought::text(item.get("content"), &format!("{path}.content"))? {
            text if text.is_empty() => thought::text(Some(item), path),
            text => Ok(text),
        },
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn present(value: Option<String>, path: &str, field: &str) -> Result<String, Error> {
    value
        .filter(|value| !value.is_empty())
        .ok_or_else(|| missing(path, field))
}

fn missing(path: &str, field: &str) -> Error {
    let param = format!("{path}.{field}");
    let message = format!("{param} is missing");
    Error::invalid(param, message)
}
