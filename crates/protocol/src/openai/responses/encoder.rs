//! Builds the frames of a streamed response, or the response.

use std::collections::HashMap;

use macmlx_inference::{
    FinishReason, GenerationEvent, InferenceError, Timings, TokenLogprob, ToolCallPart, Usage,
};
use serde_json::Value;

use super::{
    super::{error, logprobs},
    event::{Event, StreamEvent},
    open_item::OpenItem,
    response::{Failure, IncompleteDetails, IncompleteReason, ItemStatus, Response, Status},
    tools::{Callee, Kind},
};
use crate::{Frame, Framing, StreamEncoder};

/// Items are added to the response as they are done, also when streaming: the last frame repeats
/// them all.
#[derive(Debug)]
pub struct Encoder {
    options: Options,
    response: Response,
    open: Option<OpenItem>,
    frames: Vec<Frame>,
    next_sequence_number: u64,
    is_announced: bool,
    /// The model did not come to its own end.
    is_cut: bool,
}

/// What the request says about the answer.
#[derive(Debug)]
pub(super) struct Options {
    /// What the ids of items hold beside their place.
    pub(super) id: String,
    pub(super) wants_stream: bool,
    pub(super) wants_logprobs: bool,
    pub(super) wants_sealed_reasoning: bool,
    /// Tools by the names that the model knows.
    pub(super) callees: HashMap<String, Callee>,
    /// The request's own items, for a store that keeps them.
    pub(super) input: Vec<Value>,
}

impl Encoder {
    /// `response`: as it is before anything has been said.
    pub(super) fn new(options: Options, response: Response) -> Self {
        Self {
            options,
            response,
            open: None,
            frames: Vec::new(),
            next_sequence_number: 0,
            is_announced: false,
            is_cut: false,
        }
    }

    /// The response and the input it answers, once there is nothing to add to them.
    pub fn finished(&self) -> Option<(&Response, &[Value])> {
        matches!(self.response.status, Status::Completed | Status::Incomplete)
            .then_some((&self.response, self.options.input.as_slice()))
    }

    fn emit(&mut self, event: Event) {
        if !self.options.wants_stream {
            return;
        }
        let event = StreamEvent {
            event,
            sequence_number: self.next_sequence_number,
        };
        self.next_sequence_number += 1;
        self.frames.push(event.into_frame());
    }

    /// The first two frames. They come with the first sign of life, whatever that is.
    fn announce(&mut self) {
        if !self.is_announced {
            self.is_announced = true;
            let response = self.snapshot();
            self.emit(Event::Created { response });
            let response = self.snapshot();
            self.emit(Event::InProgress { response });
        }
    }

    /// The response without what it says so far, which has been sent.
    fn snapshot(&self) -> Response {
        Response {
            output: Vec::new(),
            ..self.response.clone()
        }
    }

    /// The next item's place, and what makes its id unique.
    fn place(&self) -> (usize, String) {
        let index = self.response.output.len();
        (index, format!("{}{index:02}", self.options.id))
    }

    fn begin(&mut self, item: OpenItem) {
        for event in item.begin() {
            self.emit(event);
        }
        self.open = Some(item);
    }

    fn grow(&mut self, piece: String, entries: Vec<Value>) {
        let event = self
            .open
            .as_mut()
            .and_then(|item| item.grow(piece, entries));
        if let Some(event) = event {
            self.emit(event);
        }
    }

    /// Ends the item being written, if one is.
    fn end(&mut self, status: ItemStatus) {
        if let Some(item) = self.open.take() {
            let (events, item) = item.end(status, self.options.wants_sealed_reasoning);
            for event in events {
                self.emit(event);
            }
            self.response.output.push(item);
        }
    }

    fn text(&mut self, text: String, tokens: &[TokenLogprob]) {
        let entries = if self.options.wants_logprobs {
            logprobs::chat_entries(tokens)
        } else {
            Vec::new()
        };
        if text.is_empty() && entries.is_empty() {
            return;
        }
        if !self.open.as_ref().is_some_and(OpenItem::is_message) {
            self.end(ItemStatus::Completed);
            let (index, suffix) = self.place();
            self.begin(OpenItem::message(&suffix, index));
        }
        self.grow(text, entries);
    }

    fn reasoning(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        if !self.open.as_ref().is_some_and(OpenItem::is_reasoning) {
            self.end(ItemStatus::Completed);
            let (index, suffix) = self.place();
            self.begin(OpenItem::reasoning(&suffix, index));
        }
        self.grow(text, Vec::new());
    }

    fn call(&mut self, part: ToolCallPart) {
        match part {
            ToolCallPart::Start { id, name } => {
                self.end(ItemStatus::Completed);
                let callee = self.options.callees.get(&name).cloned().unwrap_or(Callee {
                    kind: Kind::Function,
                    name,
                    namespace: None,
                });
                let (index, suffix) = self.place();
                self.begin(OpenItem::call(&suffix, index, id, callee));
            }
            ToolCallPart::Arguments(piece) => self.grow(piece, Vec::new()),
            ToolCallPart::End => self.end(ItemStatus::Completed),
        }
    }

    fn finish(&mut self, reason: FinishReason) {
        self.is_cut = match reason {
            FinishReason::Stop | FinishReason::ToolCalls => false,
            FinishReason::Length => {
                self.response.incomplete_details = Some(IncompleteDetails {
                    reason: IncompleteReason::MaxOutputTokens,
                });
                true
            }
            FinishReason::Cancelled => true,
        };
        // A call that is open now was cut, whatever cut it.
        let is_call = self.open.as_ref().is_some_and(OpenItem::is_call);
        self.end(if self.is_cut || is_call {
            ItemStatus::Incomplete
        } else {
            ItemStatus::Completed
        });
    }

    fn complete(&mut self, usage: &Usage, timings: &Timings) {
        self.response.usage = Some(usage.into());
        let event = if self.is_cut {
            self.response.status = Status::Incomplete;
            let response = self.response.clone();
            Event::Incomplete { response }
        } else {
            self.response.status = Status::Completed;
            let took = timings.load + timings.queue + timings.prefill + timings.decode;
            self.response.completed_at = Some(self.response.created_at + took.as_secs());
            let response = self.response.clone();
            Event::Completed { response }
        };
        self.emit(event);
    }

    fn take_frames(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.frames)
    }
}

impl StreamEncoder for Encoder {
    const FRAMING: Framing = Framing::Sse;

    fn encode(&mut self, _prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        match event {
            GenerationEvent::Started { model, .. } => {
                self.response.model = model;
                self.announce();
            }
            GenerationEvent::Loading { .. }
            | GenerationEvent::Loaded { .. }
            | GenerationEvent::Prefill { .. }
            | GenerationEvent::PromptLogprobs { .. }
            | GenerationEvent::ToolRun { .. } => {}
            GenerationEvent::Text { text, tokens, .. } => self.text(text, &tokens),
            // Log probabilities are about the text: tokens of thinking are left out.
            GenerationEvent::Reasoning { text, .. } => self.reasoning(text),
            GenerationEvent::ToolCall { part, .. } => self.call(part),
            GenerationEvent::Finished { reason, .. } => self.finish(reason),
            GenerationEvent::Completed { usage, timings } => self.complete(&usage, &timings),
        }
        self.take_frames()
    }

    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame> {
        self.announce();
        self.end(ItemStatus::Incomplete);
        let failure = failure(error);
        let described = error::mid_stream(error)["error"].take();
        self.emit(Event::Error {
            code: described["code"].as_str().map(str::to_owned),
            message: failure.message.clone(),
            param: described["param"].as_str().map(str::to_owned),
            error: described,
        });
        self.response.error = Some(failure);
        self.response.status = Status::Failed;
        let response = self.response.clone();
        self.emit(Event::Failed { response });
        self.take_frames()
    }

    /// Comments are no sign of life to agents, events are.
    fn heartbeat(&mut self) -> Vec<Frame> {
        if self.is_announced {
            let response = self.snapshot();
            self.emit(Event::InProgress { response });
        } else {
            self.announce();
        }
        self.take_frames()
    }

    fn into_body(self) -> Value {
        serde_json::to_value(self.response).unwrap_or_default()
    }
}

/// What a response says went wrong, in the codes that clients of this API know.
fn failure(error: &InferenceError) -> Failure {
    let code = match error {
        InferenceError::ModelNotFound { .. }
        | InferenceError::AmbiguousModel { .. }
        | InferenceError::InvalidRequest { .. }
        | InferenceError::Unsupported { .. }
        | InferenceError::Template { .. } => "invalid_prompt",
        // Agents look for this code to know that they must shorten the conversation.
        InferenceError::ContextLength { .. } => "context_length_exceeded",
        InferenceError::Overloaded => "rate_limit_exceeded",
        InferenceError::ModelLoad { .. }
        | InferenceError::InvalidOutput { .. }
        | InferenceError::OutOfMemory { .. }
        | InferenceError::Cancelled
        | InferenceError::ShuttingDown
        | InferenceError::Engine { .. } => "server_error",
    };
    let described = error::mid_stream(error);
    let message = described["error"]["message"].as_str().unwrap_or_default();
    Failure {
        code: code.to_owned(),
        message: message.to_owned(),
    }
}
