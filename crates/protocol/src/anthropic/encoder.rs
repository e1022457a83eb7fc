//! What the backend says, as events or as a whole message.
//!
//! Invariants: a block is closed before the next opens, each delta has its block's kind, blocks are
//! numbered without gaps, and a message that ends leaves no block open. A stream that fails leaves
//! its block open, as Anthropic does: a client must not take half a tool call for a whole one.

use macmlx_inference::{FinishReason, GenerationEvent, InferenceError, ToolCallPart};
use serde_json::{Map, Value};

use super::{
    assembly::Assembly,
    error,
    reply::{ContentBlock, Delta, Message, MessageDelta, StopReason, StreamEvent, Usage},
    signature,
    thinking::Display,
};
use crate::{Frame, Framing, StreamEncoder, json};

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
    /// A thinking block, with the text that its signature is to carry.
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
            GenerationEvent::Loading { .. }
            | GenerationEvent::Loaded { .. }
            | GenerationEvent::Prefill { .. }
            | GenerationEvent::PromptLogprobs { .. }
            | GenerationEvent::ToolRun { .. } => {}
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
                for event in events {
                    assembly.apply(event);
                }
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
        json::value(&self.assembly.and_then(Assembly::into_message))
    }
}

#[cfg(test)]
mod tests {
    use macmlx_inference::{Timings, Usage as Counts};

    use super::*;

    fn encoder(display: Display, max_tokens: Option<u32>) -> Encoder {
        Encoder::new("1".into(), true, display, max_tokens)
    }

    fn started() -> GenerationEvent {
        GenerationEvent::Started {
            model: "org/small".into(),
            prompt_tokens: 10,
            cached_tokens: 4,
        }
    }

    fn text(text: &str) -> GenerationEvent {
        GenerationEvent::Text {
            choice: 0,
            text: text.into(),
            tokens: Vec::new(),
        }
    }

    fn thought(text: &str) -> GenerationEvent {
        GenerationEvent::Reasoning {
            choice: 0,
            text: text.into(),
            tokens: Vec::new(),
        }
    }

    fn call(part: ToolCallPart) -> GenerationEvent {
        GenerationEvent::ToolCall {
            choice: 0,
            part,
            tokens: Vec::new(),
        }
    }

    fn begins(id: &str) -> GenerationEvent {
        call(ToolCallPart::Start {
            id: id.into(),
            name: "f".into(),
        })
    }

    fn arguments(text: &str) -> GenerationEvent {
        call(ToolCallPart::Arguments(text.into()))
    }

    fn finished(reason: FinishReason, stop_sequence: Option<&str>) -> GenerationEvent {
        GenerationEvent::Finished {
            choice: 0,
            reason,
            stop_sequence: stop_sequence.map(str::to_owned),
        }
    }

    fn completed() -> GenerationEvent {
        GenerationEvent::Completed {
            usage: Counts {
                prompt_tokens: 10,
                cached_tokens: 4,
                completion_tokens: 7,
                reasoning_tokens: 2,
            },
            timings: Timings::default(),
        }
    }

    fn events(encoder: &mut Encoder, said: Vec<GenerationEvent>) -> Vec<StreamEvent> {
        said.into_iter()
            .flat_map(|event| encoder.events(event))
            .collect()
    }

    /// `kind` and index of each event, as `start 0 text`.
    fn shape(events: &[StreamEvent]) -> Vec<String> {
        events
            .iter()
            .map(|event| match event {
                StreamEvent::ContentBlockStart {
                    index,
                    content_block,
                } => {
                    let kind = match content_block {
                        ContentBlock::Text { .. } => "text",
                        ContentBlock::Thinking { .. } => "thinking",
                        ContentBlock::ToolUse { .. } => "tool_use",
                    };
                    format!("start {index} {kind}")
                }
                StreamEvent::ContentBlockDelta { index, delta } => {
                    let kind = match delta {
                        Delta::TextDelta { .. } => "text",
                        Delta::ThinkingDelta { .. } => "thinking",
                        Delta::SignatureDelta { .. } => "signature",
                        Delta::InputJsonDelta { .. } => "input",
                    };
                    format!("delta {index} {kind}")
                }
                StreamEvent::ContentBlockStop { index } => format!("stop {index}"),
                other => other.name().to_owned(),
            })
            .collect()
    }

    /// What clients rely on, whatever a backend says.
    fn check_order(events: &[StreamEvent]) {
        let mut open: Option<(u32, &ContentBlock)> = None;
        let mut next = 0;
        for event in events {
            match (event, open) {
                (
                    StreamEvent::ContentBlockStart {
                        index,
                        content_block,
                    },
                    None,
                ) => {
                    assert_eq!(*index, next);
                    open = Some((*index, content_block));
                }
                (StreamEvent::ContentBlockDelta { index, delta }, Some((opened, block))) => {
                    assert_eq!(*index, opened);
                    let fits = matches!(
                        (delta, block),
                        (Delta::TextDelta { .. }, ContentBlock::Text { .. })
                            | (
                                Delta::ThinkingDelta { .. } | Delta::SignatureDelta { .. },
                                ContentBlock::Thinking { .. }
                            )
                            | (Delta::InputJsonDelta { .. }, ContentBlock::ToolUse { .. })
                    );
                    assert!(fits, "{delta:?} in {block:?}");
                }
                (StreamEvent::ContentBlockStop { index }, Some((opened, _))) => {
                    assert_eq!(*index, opened);
                    open = None;
                    next += 1;
                }
                (
                    StreamEvent::MessageStart { .. }
                    | StreamEvent::MessageDelta { .. }
                    | StreamEvent::MessageStop,
                    None,
                ) => {}
                (event, open) => panic!("{event:?} while {open:?} is open"),
            }
        }
        assert!(matches!(
            events.first(),
            Some(StreamEvent::MessageStart { .. })
        ));
        assert!(matches!(
            events,
            [
                ..,
                StreamEvent::MessageDelta { .. },
                StreamEvent::MessageStop
            ]
        ));
    }

    #[test]
    fn a_block_is_closed_before_one_of_another_kind_opens() {
        let said = vec![
            started(),
            thought("h"),
            thought("m"),
            text("a"),
            text("b"),
            begins("t1"),
            arguments("{\"a\""),
            arguments(":1}"),
            call(ToolCallPart::End),
            begins("t2"),
            call(ToolCallPart::End),
            finished(FinishReason::ToolCalls, None),
            completed(),
        ];
        let events = events(&mut encoder(Display::Shown, None), said);
        check_order(&events);
        assert_eq!(
            shape(&events),
            [
                "message_start",
                "start 0 thinking",
                "delta 0 thinking",
                "delta 0 thinking",
                "delta 0 signature",
                "stop 0",
                "start 1 text",
                "delta 1 text",
                "delta 1 text",
                "stop 1",
                "start 2 tool_use",
                "delta 2 input",
                "delta 2 input",
                "stop 2",
                "start 3 tool_use",
                "stop 3",
                "message_delta",
                "message_stop",
            ]
        );
    }

    #[test]
    fn every_order_of_three_pieces_is_well_formed() {
        let pieces: [fn() -> Vec<GenerationEvent>; 5] = [
            || vec![text("a")],
            || vec![thought("b")],
            || vec![begins("t"), arguments("{}"), call(ToolCallPart::End)],
            // Cut off by max_tokens.
            || vec![begins("t"), arguments("{\"a")],
            || vec![text(""), thought("")],
        ];
        for display in [Display::None, Display::Omitted, Display::Shown] {
            for order in 0..125 {
                let mut said = vec![started()];
                for place in [order / 25, order / 5 % 5, order % 5] {
                    said.extend(pieces[place]());
                }
                said.extend([finished(FinishReason::Length, None), completed()]);
                check_order(&events(&mut encoder(display, None), said));
            }
        }
    }

    #[test]
    fn thinking_that_is_not_shown_is_carried_by_the_signature() {
        let said = vec![
            started(),
            thought("deep "),
            thought("thought"),
            text("a"),
            finished(FinishReason::Stop, None),
            completed(),
        ];
        let events = events(&mut encoder(Display::Omitted, None), said);
        assert_eq!(
            shape(&events)[1..4],
            ["start 0 thinking", "delta 0 signature", "stop 0"]
        );
        let StreamEvent::ContentBlockDelta {
            delta: Delta::SignatureDelta { signature },
            ..
        } = &events[2]
        else {
            panic!("{:?}", events[2]);
        };
        assert_eq!(
            signature::restore(signature).as_deref(),
            Some("deep thought")
        );
    }

    #[test]
    fn thinking_nobody_asked_for_is_not_shown() {
        let said = vec![
            started(),
            thought("h"),
            text("a"),
            thought("m"),
            text("b"),
            finished(FinishReason::Stop, None),
            completed(),
        ];
        let events = events(&mut encoder(Display::None, None), said);
        assert_eq!(
            shape(&events)[1..5],
            ["start 0 text", "delta 0 text", "delta 0 text", "stop 0"]
        );
    }

    #[test]
    fn the_reason_for_the_end_is_told() {
        use FinishReason::{Cancelled, Length, Stop, ToolCalls};
        for (reason, sequence, max_tokens, expected) in [
            (Stop, None, None, StopReason::EndTurn),
            (Stop, Some("END"), None, StopReason::StopSequence),
            (ToolCalls, None, None, StopReason::ToolUse),
            (Length, None, Some(7), StopReason::MaxTokens),
            (
                Length,
                None,
                Some(8),
                StopReason::ModelContextWindowExceeded,
            ),
            (Length, None, None, StopReason::ModelContextWindowExceeded),
            (Cancelled, None, None, StopReason::EndTurn),
        ] {
            let mut encoder = encoder(Display::None, max_tokens);
            let events = events(
                &mut encoder,
                vec![started(), finished(reason, sequence), completed()],
            );
            let StreamEvent::MessageDelta { delta, usage } = &events[1] else {
                panic!("{events:?}");
            };
            assert_eq!(delta.stop_reason, expected, "{reason:?}");
            assert_eq!(delta.stop_sequence.as_deref(), sequence);
            assert_eq!((usage.input_tokens, usage.cache_read_input_tokens), (6, 4));
            assert_eq!(usage.output_tokens, 7);
        }
    }

    #[test]
    fn a_failure_leaves_a_call_open() {
        let mut encoder = encoder(Display::None, None);
        events(
            &mut encoder,
            vec![started(), begins("t"), arguments("{\"p")],
        );
        let failure = InferenceError::Engine {
            message: "lost".into(),
        };
        let frames = encoder.encode_error(&failure);
        let [Frame::Data { event, data }] = &frames[..] else {
            panic!("{frames:?}");
        };
        assert_eq!(*event, Some("error"));
        assert_eq!(
            data,
            r#"{"type":"error","error":{"type":"api_error","message":"the engine failed: lost"}}"#
        );
    }
}
