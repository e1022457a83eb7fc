//! What the backend says, as pieces of a filled gap or as a whole one.

use macmlx_inference::{FinishReason, GenerationEvent, InferenceError, TokenLogprob};
use serde_json::Value;

use super::{
    indentation::Indentation,
    reply::{Completion, Piece, Speeds, chosen, probabilities},
};
use crate::{Frame, Framing, StreamEncoder, json, openai::error};

/// What the client asked for, beside the text.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) stream: bool,
    pub(super) probabilities: bool,
    /// The client has said how many tokens there may be.
    pub(super) has_limit: bool,
    /// Empty: all of them.
    pub(super) fields: Vec<String>,
}

/// Builds the frames of `/infill` or its one reply.
#[derive(Debug)]
pub struct Encoder {
    wanted: Wanted,
    indentation: Indentation,
    end: Completion,
}

impl Encoder {
    pub(super) fn new(model: String, wanted: Wanted, indentation: Indentation) -> Self {
        Self {
            end: Completion {
                piece: Piece {
                    stop: true,
                    ..piece(String::new(), 0, wanted.probabilities.then(Vec::new))
                },
                model,
                tokens_predicted: 0,
                has_new_line: false,
                truncated: false,
                stop_type: "none",
                stopping_word: String::new(),
                tokens_cached: 0,
                timings: Speeds::default(),
            },
            wanted,
            indentation,
        }
    }

    fn add(&mut self, text: String, tokens: &[TokenLogprob]) -> Vec<Frame> {
        self.end.has_new_line |= text.contains('\n');
        let entries = if self.wanted.probabilities {
            probabilities(tokens)
        } else {
            Vec::new()
        };
        if text.is_empty() && entries.is_empty() {
            return Vec::new();
        }
        if self.wanted.stream {
            let entries = self.wanted.probabilities.then_some(entries);
            let piece = piece(text, self.end.piece.tokens_evaluated, entries);
            return vec![Frame::data(json::text(&piece))];
        }
        self.end.piece.content.push_str(&text);
        if let Some(all) = &mut self.end.piece.completion_probabilities {
            all.extend(entries);
        }
        Vec::new()
    }

    fn finish(&mut self, reason: FinishReason, stop_sequence: Option<String>) -> Vec<Frame> {
        let rest = self.indentation.finish();
        let frames = self.add(rest, &[]);
        let is_full = reason == FinishReason::Length;
        let is_over = self.indentation.is_over();
        self.end.truncated = is_full && !is_over && !self.wanted.has_limit;
        self.end.stop_type = match stop_sequence {
            _ if is_full || is_over => "limit",
            Some(_) => "word",
            None => "eos",
        };
        self.end.stopping_word = stop_sequence.filter(|_| !is_over).unwrap_or_default();
        frames
    }

    fn body(&self) -> Value {
        chosen(json::value(&self.end), &self.wanted.fields)
    }
}

fn piece(content: String, tokens_evaluated: u32, entries: Option<Vec<Value>>) -> Piece {
    Piece {
        index: 0,
        content,
        tokens: [],
        stop: false,
        tokens_evaluated,
        completion_probabilities: entries,
    }
}

impl StreamEncoder for Encoder {
    const FRAMING: Framing = Framing::Sse;

    fn encode(&mut self, _prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        match event {
            GenerationEvent::Started {
                model,
                prompt_tokens,
                ..
            } => {
                self.end.model = model;
                self.end.piece.tokens_evaluated = prompt_tokens;
                Vec::new()
            }
            // A gap's text is not parsed: there are no calls, and all of it is text.
            GenerationEvent::Loading { .. }
            | GenerationEvent::Loaded { .. }
            | GenerationEvent::Prefill { .. }
            | GenerationEvent::PromptLogprobs { .. }
            | GenerationEvent::ToolCall { .. }
            | GenerationEvent::ToolRun { .. } => Vec::new(),
            GenerationEvent::Text { text, tokens, .. }
            | GenerationEvent::Reasoning { text, tokens, .. } => {
                if self.indentation.is_over() {
                    return Vec::new();
                }
                let certain = self.indentation.push(&text);
                self.add(certain, &tokens)
            }
            GenerationEvent::Finished {
                reason,
                stop_sequence,
                ..
            } => self.finish(reason, stop_sequence),
            GenerationEvent::Completed { usage, timings } => {
                self.end.tokens_predicted = usage.completion_tokens;
                self.end.tokens_cached = usage.cached_tokens;
                self.end.timings = Speeds::of(&usage, &timings);
                if self.wanted.stream {
                    vec![Frame::data(self.body().to_string())]
                } else {
                    Vec::new()
                }
            }
        }
    }

    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame> {
        vec![Frame::data(error::mid_stream(error).to_string())]
    }

    fn into_body(self) -> Value {
        self.body()
    }
}
