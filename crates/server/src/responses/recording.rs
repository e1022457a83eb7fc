//! Keeps a response once it is complete, while its frames go to the client.
//!
//! A response that fails, or whose client leaves before the end, leaves nothing behind.

use std::sync::Arc;

use macmlx_inference::{GenerationEvent, InferenceError};
use macmlx_protocol::{
    Frame, Framing, StreamEncoder,
    openai::responses::{Encoder, Response},
};
use serde_json::Value;

use super::store::{Lineage, Store};

/// An encoder whose response is kept.
#[derive(Debug)]
pub(crate) struct Recording {
    encoder: Encoder,
    store: Arc<Store>,
    lineage: Lineage,
}

impl Recording {
    pub(crate) fn new(encoder: Encoder, store: Arc<Store>, lineage: Lineage) -> Self {
        Self {
            encoder,
            store,
            lineage,
        }
    }
}

impl StreamEncoder for Recording {
    const FRAMING: Framing = Encoder::FRAMING;

    fn encode(&mut self, prompt: usize, event: GenerationEvent) -> Vec<Frame> {
        let is_last = matches!(event, GenerationEvent::Completed { .. });
        let frames = self.encoder.encode(prompt, event);
        // Before the client reads the last frame: it may come back with the id at once.
        if is_last && let Some((response, input)) = self.encoder.finished() {
            self.store.record(&self.lineage, response, input);
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

/// A response as JSON and, apart from it, the items it said.
pub(super) fn take_apart(response: &Response) -> (Value, Vec<Value>) {
    let mut response = serde_json::to_value(response).unwrap_or_default();
    let output = match response.get_mut("output").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    (response, output)
}
