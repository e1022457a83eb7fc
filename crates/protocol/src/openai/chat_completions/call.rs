//! Calls on their way to the client: as tool calls, a custom tool's text, or a function call of old.

use super::{
    super::{freeform::Reader, tools::Calls},
    reply::{
        CallDelta, CustomCall, CustomDelta, Delta, FunctionCall, FunctionDelta, Message, ToolCall,
    },
};

/// The calls of one choice. A streamed reply keeps the latest one only.
#[derive(Debug, Default)]
pub(super) struct Written {
    calls: Vec<Call>,
    /// Calls begun so far.
    count: u32,
    /// Calls that have ended.
    ended: u32,
}

#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    /// JSON text of a function's arguments, or a custom tool's text; only for a whole reply.
    text: String,
    is_custom: bool,
    /// Takes a custom tool's text out of its arguments, until the call ends.
    reader: Option<Reader>,
}

impl Written {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns whether there are calls and none of them was cut.
    pub(super) fn are_whole(&self) -> bool {
        self.count > 0 && self.ended == self.count
    }

    /// A call begins.
    pub(super) fn start(&mut self, id: String, name: String, form: &Calls, streams: bool) -> Delta {
        if streams {
            self.calls.clear();
        }
        self.count += 1;
        let is_custom = form.custom.contains(&name);
        let call = Call {
            id,
            name,
            text: String::new(),
            is_custom,
            reader: is_custom.then(Reader::default),
        };
        let delta = self.delta(&call, true, String::new(), form);
        self.calls.push(call);
        delta
    }

    /// More of the latest call's arguments; nothing while a custom tool's text cannot be read yet.
    pub(super) fn arguments(
        &mut self,
        piece: String,
        form: &Calls,
        streams: bool,
    ) -> Option<Delta> {
        let call = self.calls.last_mut()?;
        let text = match &mut call.reader {
            Some(reader) => reader.push(&piece),
            None => piece,
        };
        self.grow(text, form, streams)
    }

    /// The latest call ends: what is left of a custom tool's text.
    pub(super) fn end(&mut self, form: &Calls, streams: bool) -> Option<Delta> {
        self.ended = self.count;
        let mut reader = self.calls.last_mut()?.reader.take()?;
        self.grow(reader.finish(), form, streams)
    }

    fn grow(&mut self, text: String, form: &Calls, streams: bool) -> Option<Delta> {
        let call = self.calls.last_mut()?;
        if !streams {
            call.text.push_str(&text);
            return None;
        }
        if call.is_custom && text.is_empty() {
            return None;
        }
        let call = self.calls.last()?;
        Some(self.delta(call, false, text, form))
    }

    fn delta(&self, call: &Call, begins: bool, text: String, form: &Calls) -> Delta {
        let name = begins.then(|| call.name.clone());
        let function = |name, arguments| Some(FunctionDelta { name, arguments });
        if form.is_legacy {
            return Delta {
                function_call: function(name, text),
                ..Delta::default()
            };
        }
        let kind = if call.is_custom { "custom" } else { "function" };
        let part = CallDelta {
            index: self.count - 1,
            id: begins.then(|| call.id.clone()),
            r#type: begins.then_some(kind),
            ..CallDelta::default()
        };
        let part = if call.is_custom {
            let custom = Some(CustomDelta { name, input: text });
            CallDelta { custom, ..part }
        } else {
            CallDelta {
                function: function(name, text),
                ..part
            }
        };
        Delta {
            tool_calls: vec![part],
            ..Delta::default()
        }
    }

    /// Puts the calls of a whole reply into its message.
    pub(super) fn tell(self, message: &mut Message, form: &Calls) {
        let mut calls = self.calls.into_iter();
        if form.is_legacy {
            message.function_call = calls.next().map(|call| FunctionCall {
                name: call.name,
                arguments: call.text,
            });
        } else {
            message.tool_calls = calls.map(Call::into_tool_call).collect();
        }
    }
}

impl Call {
    fn into_tool_call(self) -> ToolCall {
        if self.is_custom {
            ToolCall::Custom {
                id: self.id,
                r#type: "custom",
                custom: CustomCall {
                    name: self.name,
                    input: self.text,
                },
            }
        } else {
            ToolCall::Function {
                id: self.id,
                r#type: "function",
                function: FunctionCall {
                    name: self.name,
                    arguments: self.text,
                },
            }
        }
    }
}
