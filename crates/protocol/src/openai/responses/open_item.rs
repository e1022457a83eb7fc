//! The item a model is writing: how it grows, and the events that say so.

use serde_json::{Value, json};

use super::{
    event::Event,
    freeform,
    item_end::{end_custom, end_function, end_message, end_reasoning},
    response::{Assistant, Execution, ItemStatus, OutputItem, OutputText, SummaryText},
    tools::{Callee, Kind},
};

#[derive(Debug)]
pub(super) struct OpenItem {
    id: String,
    output_index: usize,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Message {
        text: String,
        logprobs: Vec<Value>,
    },
    Reasoning {
        text: String,
    },
    Function {
        call_id: String,
        callee: Callee,
        arguments: String,
    },
    Custom {
        call_id: String,
        callee: Callee,
        input: freeform::Reader,
    },
    Search {
        call_id: String,
        arguments: String,
    },
}

impl OpenItem {
    /// `suffix` makes the id unique.
    pub(super) fn message(suffix: &str, output_index: usize) -> Self {
        let body = Body::Message {
            text: String::new(),
            logprobs: Vec::new(),
        };
        Self::new("msg", suffix, output_index, body)
    }

    pub(super) fn reasoning(suffix: &str, output_index: usize) -> Self {
        let body = Body::Reasoning {
            text: String::new(),
        };
        Self::new("rs", suffix, output_index, body)
    }

    pub(super) fn call(suffix: &str, output_index: usize, call_id: String, callee: Callee) -> Self {
        let (prefix, body) = match callee.kind {
            Kind::Function => (
                "fc",
                Body::Function {
                    call_id,
                    callee,
                    arguments: String::new(),
                },
            ),
            Kind::Custom => (
                "ctc",
                Body::Custom {
                    call_id,
                    callee,
                    input: freeform::Reader::default(),
                },
            ),
            Kind::Search => (
                "tsc",
                Body::Search {
                    call_id,
                    arguments: String::new(),
                },
            ),
        };
        Self::new(prefix, suffix, output_index, body)
    }

    fn new(prefix: &str, suffix: &str, output_index: usize, body: Body) -> Self {
        Self {
            id: format!("{prefix}_{suffix}"),
            output_index,
            body,
        }
    }

    pub(super) fn is_message(&self) -> bool {
        matches!(self.body, Body::Message { .. })
    }

    pub(super) fn is_reasoning(&self) -> bool {
        matches!(self.body, Body::Reasoning { .. })
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(
            self.body,
            Body::Function { .. } | Body::Custom { .. } | Body::Search { .. }
        )
    }

    /// The events with which the item begins.
    pub(super) fn begin(&self) -> Vec<Event> {
        let (item_id, output_index) = (self.id.clone(), self.output_index);
        let added = Event::ItemAdded {
            output_index,
            item: self.empty(),
        };
        let part = match self.body {
            Body::Message { .. } => Event::PartAdded {
                item_id,
                output_index,
                content_index: 0,
                part: OutputText::new(String::new(), Vec::new()),
            },
            Body::Reasoning { .. } => Event::SummaryPartAdded {
                item_id,
                output_index,
                summary_index: 0,
                part: SummaryText::new(String::new()),
            },
            Body::Function { .. } | Body::Custom { .. } | Body::Search { .. } => {
                return vec![added];
            }
        };
        vec![added, part]
    }

    /// Adds text, thoughts or arguments, whatever the item is made of.
    pub(super) fn grow(&mut self, piece: String, entries: Vec<Value>) -> Option<Event> {
        let (item_id, output_index) = (self.id.clone(), self.output_index);
        match &mut self.body {
            Body::Message { text, logprobs } => {
                text.push_str(&piece);
                logprobs.extend_from_slice(&entries);
                Some(Event::TextDelta {
                    item_id,
                    output_index,
                    content_index: 0,
                    delta: piece,
                    logprobs: entries,
                })
            }
            Body::Reasoning { text } => {
                text.push_str(&piece);
                Some(Event::SummaryDelta {
                    item_id,
                    output_index,
                    summary_index: 0,
                    delta: piece,
                })
            }
            Body::Function { arguments, .. } => {
                arguments.push_str(&piece);
                Some(Event::ArgumentsDelta {
                    item_id,
                    output_index,
                    delta: piece,
                })
            }
            Body::Custom { input, .. } => {
                let delta = input.push(&piece);
                (!delta.is_empty()).then_some(Event::InputDelta {
                    item_id,
                    output_index,
                    delta,
                })
            }
            Body::Search { arguments, .. } => {
                arguments.push_str(&piece);
                None
            }
        }
    }

    /// The events with which the item ends, and the whole of it. `seals`: thoughts are to come back
    /// sealed.
    pub(super) fn end(self, status: ItemStatus, seals: bool) -> (Vec<Event>, OutputItem) {
        let (id, output_index) = (self.id, self.output_index);
        let (mut events, item) = match self.body {
            Body::Message { text, logprobs } => {
                end_message(id, output_index, status, text, logprobs)
            }
            Body::Reasoning { text } => end_reasoning(id, output_index, status, text, seals),
            Body::Function {
                call_id,
                callee,
                arguments,
            } => end_function(id, output_index, status, call_id, callee, arguments),
            Body::Custom {
                call_id,
                callee,
                input,
            } => end_custom(id, output_index, status, call_id, callee, input),
            Body::Search { call_id, arguments } => {
                let arguments = match arguments.trim() {
                    "" => json!({}),
                    text => macmlx_json::parse(text.as_bytes()).unwrap_or(Value::String(arguments)),
                };
                let item = OutputItem::ToolSearchCall {
                    id,
                    status,
                    call_id,
                    execution: Execution::Client,
                    arguments,
                };
                (Vec::new(), item)
            }
        };
        events.push(Event::ItemDone {
            output_index,
            item: item.clone(),
        });
        (events, item)
    }

    /// The item as it is added.
    fn empty(&self) -> OutputItem {
        let id = self.id.clone();
        let status = ItemStatus::InProgress;
        match &self.body {
            Body::Message { .. } => OutputItem::Message {
                id,
                status,
                role: Assistant::Assistant,
                content: Vec::new(),
            },
            Body::Reasoning { .. } => OutputItem::Reasoning {
                id,
                status,
                summary: Vec::new(),
                encrypted_content: None,
            },
            Body::Function {
                call_id, callee, ..
            } => OutputItem::FunctionCall {
                id,
                status,
                call_id: call_id.clone(),
                name: callee.name.clone(),
                namespace: callee.namespace.clone(),
                arguments: String::new(),
            },
            Body::Custom {
                call_id, callee, ..
            } => OutputItem::CustomToolCall {
                id,
                status,
                call_id: call_id.clone(),
                name: callee.name.clone(),
                namespace: callee.namespace.clone(),
                input: String::new(),
            },
            Body::Search { call_id, .. } => OutputItem::ToolSearchCall {
                id,
                status,
                call_id: call_id.clone(),
                execution: Execution::Client,
                arguments: json!({}),
            },
        }
    }
}
