//! Conversations of LM Studio's dialect, by the id of each of their responses.
//!
//! Bounded in number and in bytes; what was used longest ago makes way first. Turns are shared
//! between a response and those that go on from it.

use std::{collections::HashMap, sync::Arc};

use macmlx_inference::{GenerationEvent, InferenceError, Message};
use macmlx_protocol::{Frame, Framing, StreamEncoder, lm_studio::chat::Encoder};
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    Limits,
    kept::{Kept, Meter},
};

/// The turns of a conversation, oldest first.
pub(crate) type Turns = Vec<Arc<Kept>>;

/// All conversations that are kept.
#[derive(Debug, Default)]
pub(crate) struct Chats {
    limits: Limits,
    meter: Meter,
    kept: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    /// The turns up to a response, and when it was used.
    responses: HashMap<String, (u64, Turns)>,
    /// Counts uses.
    clock: u64,
}

impl Chats {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// The turns up to a response.
    pub(crate) fn turns(&self, response: &str) -> Option<Turns> {
        let mut kept = self.kept.lock();
        kept.clock += 1;
        let now = kept.clock;
        let (last_used, turns) = kept.responses.get_mut(response)?;
        *last_used = now;
        Some(turns.clone())
    }

    /// Keeps a response that came after `past`.
    fn keep(&self, id: &str, past: &Turns, said: &[Message]) {
        let said = said.iter().map(|turn| {
            let turn = serde_json::to_value(turn).unwrap_or_default();
            Kept::new(turn, &self.meter)
        });
        let turns = past.iter().cloned().chain(said).collect();
        let mut kept = self.kept.lock();
        kept.clock += 1;
        let now = kept.clock;
        kept.responses.insert(id.to_owned(), (now, turns));
        while kept.responses.len() > self.limits.responses
            || (self.meter.bytes() > self.limits.bytes && !kept.responses.is_empty())
        {
            let oldest = kept
                .responses
                .iter()
                .min_by_key(|(_, (last_used, _))| *last_used)
                .map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return };
            kept.responses.remove(&oldest);
        }
    }
}

/// Turns as the translation reads them.
pub(crate) fn messages(turns: &Turns) -> Vec<Message> {
    turns
        .iter()
        .filter_map(|turn| serde_json::from_value(turn.value().clone()).ok())
        .collect()
}

/// An encoder whose answer is kept once it is complete.
#[derive(Debug)]
pub(crate) struct Remembering {
    pub(crate) encoder: Encoder,
    pub(crate) chats: Arc<Chats>,
    pub(crate) past: Turns,
    pub(crate) wants_store: bool,
}

impl StreamEncoder for Remembering {
    const FRAMING: Framing = Encoder::FRAMING;

    fn encode(&mut self, prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        let is_last = matches!(event, GenerationEvent::Completed { .. });
        let frames = self.encoder.encode(prompt, event);
        // Before the client reads the last frame: it may come back with the id at once.
        if is_last && self.wants_store {
            let (id, said) = self.encoder.finished();
            self.chats.keep(id, &self.past, &said);
        }
        frames
    }

    fn encode_error(&mut self, error: &InferenceError) -> Vec<Frame> {
        self.encoder.encode_error(error)
    }

    fn heartbeat(&mut self) -> Vec<Frame> {
        self.encoder.heartbeat()
    }

    fn into_body(self) -> Value {
        self.encoder.into_body()
    }
}

#[cfg(test)]
mod tests {
    use macmlx_inference::Role;

    use super::*;

    fn limits(responses: usize, bytes: usize) -> Limits {
        Limits {
            responses,
            bytes,
            ..Limits::default()
        }
    }

    #[test]
    fn a_response_has_all_turns_before_it_and_the_oldest_makes_way() {
        let chats = Chats::new(limits(2, 1_000_000));
        let turn = |text: &str| vec![Message::text(Role::User, text)];
        chats.keep("a", &Vec::new(), &turn("one"));
        chats.keep("b", &chats.turns("a").unwrap(), &turn("two"));
        let all = messages(&chats.turns("b").unwrap());
        assert_eq!(all, [turn("one"), turn("two")].concat());
        // Used more recently than `b`.
        chats.turns("a").unwrap();
        chats.keep("c", &Vec::new(), &turn("three"));
        assert!(chats.turns("b").is_none());
        assert!(chats.turns("a").is_some() && chats.turns("c").is_some());
    }

    #[test]
    fn bytes_are_bounded() {
        let chats = Chats::new(limits(100, 5_000));
        for id in ["a", "b", "c"] {
            let long = Message::text(Role::User, "x".repeat(3_000));
            chats.keep(id, &Vec::new(), &[long]);
        }
        assert!(chats.turns("a").is_none() && chats.turns("b").is_none());
        assert!(chats.turns("c").is_some());
        assert!(chats.meter.bytes() <= 5_000);
    }
}
