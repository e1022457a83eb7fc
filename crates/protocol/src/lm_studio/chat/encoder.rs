//! Events of a generation as named events or one result.

use std::time::Duration;

use macmlx_inference::{GenerationEvent, InferenceError, Message, Role, Timings, Usage};
use serde_json::Value;

use super::{
    super::{
        error::mid_stream,
        measured::{time_to_first_token, tokens_per_second},
    },
    reply::{ChatEvent, ChatResult, Item, Stats},
};
use crate::{Context, Frame, Framing, StreamEncoder, json};

/// Builds named events or one result. The last event repeats all of the answer, so its text is kept
/// in either case.
#[derive(Debug)]
pub struct Encoder {
    id: String,
    streams: bool,
    stores: bool,
    /// The turns of the request.
    said: Vec<Message>,
    model: String,
    phase: Phase,
    output: Vec<Item>,
    stats: Stats,
}

/// What the last event left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Nothing,
    /// The prompt is being read.
    Prompt,
    /// The last item of the output can grow.
    Item,
}

impl Encoder {
    pub(super) fn new(context: &Context, streams: bool, stores: bool, said: Vec<Message>) -> Self {
        Self {
            id: format!("resp_{}", context.id),
            streams,
            stores,
            said,
            model: String::new(),
            phase: Phase::Nothing,
            output: Vec::new(),
            stats: Stats::default(),
        }
    }

    /// Id of the response and the turns that it adds to its conversation. Call it once the answer is
    /// complete.
    pub fn finished(&self) -> (&str, Vec<Message>) {
        let mut turns = self.said.clone();
        let texts = |wanted: fn(&Item) -> Option<&str>| -> String {
            self.output.iter().filter_map(wanted).collect()
        };
        let reasoning = texts(|item| match item {
            Item::Reasoning { content } => Some(content),
            Item::Message { .. } => None,
        });
        let text = texts(|item| match item {
            Item::Message { content } => Some(content),
            Item::Reasoning { .. } => None,
        });
        turns.push(Message {
            reasoning: (!reasoning.is_empty()).then_some(reasoning),
            ..Message::text(Role::Assistant, text)
        });
        (&self.id, turns)
    }

    /// The stream begins with the model that answers.
    fn begin(&mut self, model: String) -> Option<ChatEvent> {
        let is_first = self.model.is_empty();
        self.model.clone_from(&model);
        is_first.then_some(ChatEvent::ChatStart {
            model_instance_id: model,
        })
    }

    /// Loading is told to begin and to end; how far it is in between is not known.
    fn load(&mut self, model: String) -> Vec<ChatEvent> {
        let begin = self.begin(model.clone());
        let loading = [
            ChatEvent::LoadStart {
                model_instance_id: model.clone(),
            },
            ChatEvent::LoadProgress {
                model_instance_id: model,
                progress: 0.0,
            },
        ];
        begin.into_iter().chain(loading).collect()
    }

    fn end_load(&self, elapsed: Duration) -> Vec<ChatEvent> {
        vec![
            ChatEvent::LoadProgress {
                model_instance_id: self.model.clone(),
                progress: 1.0,
            },
            ChatEvent::LoadEnd {
                model_instance_id: self.model.clone(),
                load_time_seconds: elapsed.as_secs_f64(),
            },
        ]
    }

    fn start(&mut self, model: String, prompt_tokens: u32) -> Vec<ChatEvent> {
        let begin = self.begin(model);
        self.stats.input_tokens = prompt_tokens;
        self.phase = Phase::Prompt;
        begin.into_iter().chain([ChatEvent::PromptStart]).collect()
    }

    /// The prompt has been read once there is anything else to tell.
    fn end_prompt(&mut self) -> Option<ChatEvent> {
        if self.phase != Phase::Prompt {
            return None;
        }
        self.phase = Phase::Nothing;
        Some(ChatEvent::PromptEnd)
    }

    fn close(&mut self) -> Option<ChatEvent> {
        if self.phase != Phase::Item {
            return None;
        }
        self.phase = Phase::Nothing;
        self.output.last().map(|item| match item {
            Item::Message { .. } => ChatEvent::MessageEnd,
            Item::Reasoning { .. } => ChatEvent::ReasoningEnd,
        })
    }

    fn write(&mut self, piece: Item) -> Vec<ChatEvent> {
        let mut events: Vec<ChatEvent> = self.end_prompt().into_iter().collect();
        let (start, delta) = match &piece {
            Item::Message { content } if !content.is_empty() => (
                ChatEvent::MessageStart,
                ChatEvent::MessageDelta {
                    content: content.clone(),
                },
            ),
            Item::Reasoning { content } if !content.is_empty() => (
                ChatEvent::ReasoningStart,
                ChatEvent::ReasoningDelta {
                    content: content.clone(),
                },
            ),
            Item::Message { .. } | Item::Reasoning { .. } => return events,
        };
        let is_open = self.phase == Phase::Item;
        let open = self.output.last_mut().filter(|_| is_open);
        match (open, piece) {
            (Some(Item::Message { content: all }), Item::Message { content })
            | (Some(Item::Reasoning { content: all }), Item::Reasoning { content }) => {
                all.push_str(&content);
            }
            (_, piece) => {
                events.extend(self.close());
                self.output.push(piece);
                self.phase = Phase::Item;
                events.push(start);
            }
        }
        events.push(delta);
        events
    }

    fn complete(&mut self, usage: &Usage, timings: &Timings) -> Vec<ChatEvent> {
        self.stats = Stats {
            input_tokens: usage.prompt_tokens,
            total_output_tokens: usage.completion_tokens,
            reasoning_output_tokens: usage.reasoning_tokens,
            tokens_per_second: tokens_per_second(usage, timings),
            time_to_first_token_seconds: time_to_first_token(timings).as_secs_f64(),
            model_load_time_seconds: (!timings.load.is_zero())
                .then_some(timings.load.as_secs_f64()),
        };
        let result = self.result(self.stores);
        vec![ChatEvent::ChatEnd { result }]
    }

    fn result(&self, is_kept: bool) -> ChatResult {
        ChatResult {
            model_instance_id: self.model.clone(),
            output: self.output.clone(),
            stats: self.stats.clone(),
            response_id: is_kept.then(|| self.id.clone()),
        }
    }

    fn frames(&self, events: impl IntoIterator<Item = ChatEvent>) -> Vec<Frame> {
        if !self.streams {
            return Vec::new();
        }
        let frames = events.into_iter().map(|event| Frame::Data {
            event: Some(event.name()),
            data: json::text(&event),
        });
        frames.collect()
    }
}

impl StreamEncoder for Encoder {
    const FRAMING: Framing = Framing::Sse;

    fn encode(&mut self, _prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        let events = match event {
            GenerationEvent::Loading { model } => self.load(model),
            GenerationEvent::Loaded { elapsed } => self.end_load(elapsed),
            GenerationEvent::Started {
                model,
                prompt_tokens,
                ..
            } => self.start(model, prompt_tokens),
            GenerationEvent::Prefill { processed, total } => vec![ChatEvent::PromptProgress {
                progress: f64::from(processed) / f64::from(total.max(1)),
            }],
            GenerationEvent::Text { text, .. } => self.write(Item::Message { content: text }),
            GenerationEvent::Reasoning { text, .. } => {
                self.write(Item::Reasoning { content: text })
            }
            // No tools are offered, so none are called.
            GenerationEvent::PromptLogprobs { .. }
            | GenerationEvent::ToolCall { .. }
            | GenerationEvent::ToolRun { .. } => Vec::new(),
            GenerationEvent::Finished { .. } => {
                let prompt = self.end_prompt();
                prompt.into_iter().chain(self.close()).collect()
            }
            GenerationEvent::Completed { usage, timings } => self.complete(&usage, &timings),
        };
        self.frames(events)
    }

    /// The error, and what was written before it. Such an answer is not kept.
    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame> {
        let failed = ChatEvent::Error {
            error: mid_stream(error),
        };
        let result = self.result(false);
        self.frames([failed, ChatEvent::ChatEnd { result }])
    }

    fn into_body(self) -> Value {
        json::value(&self.result(self.stores))
    }
}
