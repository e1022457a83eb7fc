//! Frames of a streamed response.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::response::{OutputItem, OutputText, Response, SummaryText};
use crate::Frame;

/// An event with its place in the stream.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = responses::StreamEvent)]
pub struct StreamEvent {
    #[serde(flatten)]
    pub event: Event,
    /// Counts from 0.
    pub sequence_number: u64,
}

/// What happened. Each item is added, grows by deltas, and is done before the next one is added.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type")]
#[schema(as = responses::Event)]
pub enum Event {
    #[serde(rename = "response.created")]
    Created { response: Response },
    /// Repeated while there is nothing to say.
    #[serde(rename = "response.in_progress")]
    InProgress { response: Response },
    #[serde(rename = "response.output_item.added")]
    ItemAdded {
        output_index: usize,
        item: OutputItem,
    },
    #[serde(rename = "response.output_item.done")]
    ItemDone {
        output_index: usize,
        item: OutputItem,
    },
    #[serde(rename = "response.content_part.added")]
    PartAdded {
        item_id: String,
        output_index: usize,
        content_index: usize,
        part: OutputText,
    },
    #[serde(rename = "response.content_part.done")]
    PartDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        part: OutputText,
    },
    #[serde(rename = "response.output_text.delta")]
    TextDelta {
        item_id: String,
        output_index: usize,
        content_index: usize,
        delta: String,
        logprobs: Vec<Value>,
    },
    #[serde(rename = "response.output_text.done")]
    TextDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        text: String,
        logprobs: Vec<Value>,
    },
    #[serde(rename = "response.reasoning_summary_part.added")]
    SummaryPartAdded {
        item_id: String,
        output_index: usize,
        summary_index: usize,
        part: SummaryText,
    },
    #[serde(rename = "response.reasoning_summary_part.done")]
    SummaryPartDone {
        item_id: String,
        output_index: usize,
        summary_index: usize,
        part: SummaryText,
    },
    #[serde(rename = "response.reasoning_summary_text.delta")]
    SummaryDelta {
        item_id: String,
        output_index: usize,
        summary_index: usize,
        delta: String,
    },
    #[serde(rename = "response.reasoning_summary_text.done")]
    SummaryDone {
        item_id: String,
        output_index: usize,
        summary_index: usize,
        text: String,
    },
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta {
        item_id: String,
        output_index: usize,
        delta: String,
    },
    #[serde(rename = "response.function_call_arguments.done")]
    ArgumentsDone {
        item_id: String,
        output_index: usize,
        name: String,
        arguments: String,
    },
    #[serde(rename = "response.custom_tool_call_input.delta")]
    InputDelta {
        item_id: String,
        output_index: usize,
        delta: String,
    },
    #[serde(rename = "response.custom_tool_call_input.done")]
    InputDone {
        item_id: String,
        output_index: usize,
        input: String,
    },
    #[serde(rename = "response.completed")]
    Completed { response: Response },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Response },
    #[serde(rename = "response.failed")]
    Failed { response: Response },
    /// Comes before `response.failed`. SDKs raise what is under `error`; the fields beside it are
    /// those of the API reference.
    #[serde(rename = "error")]
    Error {
        code: Option<String>,
        message: String,
        param: Option<String>,
        error: Value,
    },
}

impl Event {
    /// The `event:` line, which repeats `type`.
    fn name(&self) -> &'static str {
        match self {
            Self::Created { .. } => "response.created",
            Self::InProgress { .. } => "response.in_progress",
            Self::ItemAdded { .. } => "response.output_item.added",
            Self::ItemDone { .. } => "response.output_item.done",
            Self::PartAdded { .. } => "response.content_part.added",
            Self::PartDone { .. } => "response.content_part.done",
            Self::TextDelta { .. } => "response.output_text.delta",
            Self::TextDone { .. } => "response.output_text.done",
            Self::SummaryPartAdded { .. } => "response.reasoning_summary_part.added",
            Self::SummaryPartDone { .. } => "response.reasoning_summary_part.done",
            Self::SummaryDelta { .. } => "response.reasoning_summary_text.delta",
            Self::SummaryDone { .. } => "response.reasoning_summary_text.done",
            Self::ArgumentsDelta { .. } => "response.function_call_arguments.delta",
            Self::ArgumentsDone { .. } => "response.function_call_arguments.done",
            Self::InputDelta { .. } => "response.custom_tool_call_input.delta",
            Self::InputDone { .. } => "response.custom_tool_call_input.done",
            Self::Completed { .. } => "response.completed",
            Self::Incomplete { .. } => "response.incomplete",
            Self::Failed { .. } => "response.failed",
            Self::Error { .. } => "error",
        }
    }
}

impl StreamEvent {
    /// The event on the wire.
    pub(super) fn into_frame(self) -> Frame {
        Frame::Data {
            event: Some(self.event.name()),
            data: serde_json::to_string(&self).unwrap_or_default(),
        }
    }
}
