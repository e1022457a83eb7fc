//! Remembers what a model thought before it called a tool, for clients that do not send it back.
//!
//! Models that reason are trained to see their own reasoning between the calls of one turn; many
//! agents replay the calls only. Ids of calls are unique and random, so that the id a client replays
//! is enough to find what belongs to it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use futures::{FutureExt, StreamExt, future::BoxFuture};
use macmlx_inference::{
    Backend, ChatPrompt, EventStream, GenerateRequest, GenerationEvent, InferenceError, Layer,
    ModelCard, Prompt, Role, TokenizeInput, TokenizeRequest, ToolCallPart,
};
use parking_lot::Mutex;

/// Text that is kept at most, over all calls.
const LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// A backend that puts reasoning back where a client left it out.
pub(crate) struct Replay {
    inner: Arc<dyn Backend>,
    thoughts: Arc<Mutex<Thoughts>>,
}

impl fmt::Debug for Replay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Replay").finish_non_exhaustive()
    }
}

impl Replay {
    pub(crate) fn new(inner: Arc<dyn Backend>) -> Self {
        Self {
            inner,
            thoughts: Arc::new(Mutex::new(Thoughts::new(LIMIT_BYTES))),
        }
    }

    fn restore(&self, prompt: &mut ChatPrompt) {
        let mut thoughts = self.thoughts.lock();
        for message in &mut prompt.messages {
            if message.role == Role::Assistant && message.reasoning.is_none() {
                let known = message
                    .tool_calls
                    .iter()
                    .find_map(|call| thoughts.get(&call.id));
                message.reasoning = known.map(|reasoning| reasoning.to_string());
            }
        }
    }
}

/// Notes what passes; the events themselves go on as they are.
fn observe(events: EventStream, thoughts: Arc<Mutex<Thoughts>>) -> EventStream {
    let mut open: HashMap<u32, OpenChoice> = HashMap::new();
    events
        .inspect(move |event| match event {
            Ok(GenerationEvent::Reasoning { choice, text, .. }) => {
                open.entry(*choice).or_default().reasoning.push_str(text);
            }
            Ok(GenerationEvent::ToolCall {
                choice,
                part: ToolCallPart::Start { id, .. },
                ..
            }) => open.entry(*choice).or_default().calls.push(id.clone()),
            Ok(GenerationEvent::Finished { choice, .. }) => {
                if let Some(choice) = open.remove(choice) {
                    thoughts.lock().keep(choice);
                }
            }
            Ok(
                GenerationEvent::Loading { .. }
                | GenerationEvent::Loaded { .. }
                | GenerationEvent::Started { .. }
                | GenerationEvent::Prefill { .. }
                | GenerationEvent::PromptLogprobs { .. }
                | GenerationEvent::Text { .. }
                | GenerationEvent::ToolCall { .. }
                | GenerationEvent::ToolRun { .. }
                | GenerationEvent::Completed { .. },
            )
            | Err(_) => {}
        })
        .boxed()
}

/// A choice that is still being written.
#[derive(Debug, Default)]
struct OpenChoice {
    reasoning: String,
    calls: Vec<String>,
}

/// Reasoning by the id of the call it led to; what was not asked for longest goes first.
#[derive(Debug)]
struct Thoughts {
    limit_bytes: usize,
    bytes: usize,
    by_call: HashMap<String, Thought>,
    /// Calls by when they were last used.
    uses: BTreeMap<u64, String>,
    clock: u64,
}

#[derive(Debug)]
struct Thought {
    reasoning: Arc<str>,
    used: u64,
}

impl Thoughts {
    fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            bytes: 0,
            by_call: HashMap::new(),
            uses: BTreeMap::new(),
            clock: 0,
        }
    }

    fn keep(&mut self, choice: OpenChoice) {
        if choice.reasoning.is_empty() {
            return;
        }
        let reasoning: Arc<str> = choice.reasoning.into();
        for call in choice.calls {
            self.forget(&call);
            self.clock += 1;
            self.bytes += cost(&call, &reasoning);
            self.uses.insert(self.clock, call.clone());
            let thought = Thought {
                reasoning: reasoning.clone(),
                used: self.clock,
            };
            self.by_call.insert(call, thought);
        }
        while self.bytes > self.limit_bytes
            && let Some((_, oldest)) = self.uses.first_key_value()
        {
            let oldest = oldest.clone();
            self.forget(&oldest);
        }
    }

    fn get(&mut self, call: &str) -> Option<Arc<str>> {
        let thought = self.by_call.get_mut(call)?;
        self.clock += 1;
        self.uses.remove(&thought.used);
        thought.used = self.clock;
        self.uses.insert(self.clock, call.to_owned());
        Some(thought.reasoning.clone())
    }

    fn forget(&mut self, call: &str) {
        if let Some(thought) = self.by_call.remove(call) {
            self.uses.remove(&thought.used);
            self.bytes -= cost(call, &thought.reasoning);
        }
    }
}

/// Calls of one turn share their text; that it is counted for each errs on the safe side.
fn cost(call: &str, reasoning: &str) -> usize {
    call.len() * 2 + reasoning.len()
}

impl Layer for Replay {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn generate(
        &self,
        model: Arc<ModelCard>,
        mut request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        if let Prompt::Chat(prompt) = &mut request.prompt {
            self.restore(prompt);
        }
        async move {
            let events = self.inner.generate(model, request).await?;
            Ok(observe(events, self.thoughts.clone()))
        }
        .boxed()
    }

    fn tokenize(
        &self,
        model: Arc<ModelCard>,
        mut request: TokenizeRequest,
    ) -> BoxFuture<'_, Result<Vec<u32>, InferenceError>> {
        // A prompt is counted as it would be rendered.
        if let TokenizeInput::Chat { prompt, .. } = &mut request.input {
            self.restore(prompt);
        }
        self.inner.tokenize(model, request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(reasoning: &str, calls: &[&str]) -> OpenChoice {
        OpenChoice {
            reasoning: reasoning.into(),
            calls: calls.iter().copied().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn calls_of_one_turn_share_its_reasoning() {
        let mut thoughts = Thoughts::new(1000);
        thoughts.keep(choice("hm", &["a", "b"]));
        thoughts.keep(choice("", &["c"]));
        assert_eq!(thoughts.get("a").as_deref(), Some("hm"));
        assert_eq!(thoughts.get("b").as_deref(), Some("hm"));
        assert_eq!(thoughts.get("c"), None);
    }

    #[test]
    fn what_was_not_asked_for_longest_goes_first() {
        let mut thoughts = Thoughts::new(30);
        for call in ["a", "b", "c"] {
            thoughts.keep(choice("12345678", &[call]));
        }
        thoughts.get("a");
        thoughts.keep(choice("12345678", &["d"]));
        for (call, is_known) in [("a", true), ("b", false), ("c", true), ("d", true)] {
            assert_eq!(thoughts.get(call).is_some(), is_known, "{call}");
        }
    }

    #[test]
    fn the_books_are_kept() {
        let mut thoughts = Thoughts::new(30);
        for _ in 0..3 {
            thoughts.keep(choice("123", &["a"]));
            assert_eq!(thoughts.bytes, 5);
        }
        thoughts.keep(choice(&"x".repeat(100), &["b"]));
        assert_eq!(thoughts.bytes, 0);
        assert!(thoughts.by_call.is_empty() && thoughts.uses.is_empty());
    }
}
