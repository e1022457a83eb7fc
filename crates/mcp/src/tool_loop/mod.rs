//! A backend around a backend whose model may use the pool's tools.
//!
//! The caller sees one stream: the model's turn with its calls, what becomes of each call, the next
//! turn, and so on until the model answers without a call. Dropping the stream cancels whatever
//! goes on: the generation, the wait for a person, or the call, whose server is told.

mod driven;
mod repeats;
mod run;
mod tally;
mod turn;

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture};
use macmlx_inference::{
    Backend, ChatPrompt, EventStream, GenerateRequest, InferenceError, Layer, Message, ModelCard,
    Prompt, ToolChoice,
};

use self::{driven::Events, run::Runner, tally::Tally, turn::Turn};
use crate::{Approvals, Pool, Tool};

/// Bounds of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Turns with calls. After them the model answers without tools.
    pub rounds: u32,
    /// Time for generating and calling, waiting for a person not counted. After it the model
    /// answers without tools.
    pub time: Duration,
    /// How long a call may go on without a sign of progress.
    pub call_time: Duration,
    /// How long a call waits for a person; then it counts as denied.
    pub approval_time: Duration,
    /// Longest result that the model is told.
    pub result_bytes: usize,
    /// The same call this many times in a row is not carried out any more.
    pub repeats: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: 25,
            time: Duration::from_mins(30),
            call_time: Duration::from_mins(1),
            approval_time: Duration::from_mins(10),
            result_bytes: 64 * 1024,
            repeats: 3,
        }
    }
}

/// The loop. Without tools to offer it does nothing.
pub struct ToolLoop {
    inner: Arc<dyn Backend>,
    pool: Arc<Pool>,
    approvals: Arc<Approvals>,
    limits: Limits,
}

impl std::fmt::Debug for ToolLoop {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ToolLoop")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl ToolLoop {
    pub fn new(inner: Arc<dyn Backend>, pool: Arc<Pool>, approvals: Arc<Approvals>) -> Self {
        Self {
            inner,
            pool,
            approvals,
            limits: Limits::default(),
        }
    }

    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The tools this request's model is to be told of.
    async fn choose_tools(
        &self,
        model: &Arc<ModelCard>,
        request: &GenerateRequest,
    ) -> Result<Vec<Tool>, InferenceError> {
        let Prompt::Chat(chat) = &request.prompt else {
            return Ok(Vec::new());
        };
        if chat.tool_choice == ToolChoice::None {
            return Ok(Vec::new());
        }
        let mut tools = self.pool.list_offered().await;
        // A client's own tools keep their names.
        tools.retain(|tool| chat.tools.iter().all(|own| own.name != tool.full_name));
        if let ToolChoice::Named(name) = &chat.tool_choice
            && tools.iter().all(|tool| tool.full_name != *name)
        {
            return Ok(Vec::new());
        }
        if tools.is_empty() {
            return Ok(tools);
        }
        let traits = self.inner.traits(model.clone()).await?;
        if !traits.tools.takes_tools() {
            return Ok(Vec::new());
        }
        if request.choices > 1 {
            return Err(InferenceError::Unsupported {
                param: "n".into(),
                reason: "with MCP tools there is one answer".into(),
            });
        }
        Ok(tools)
    }
}

impl Layer for ToolLoop {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn generate(
        &self,
        model: Arc<ModelCard>,
        mut request: GenerateRequest,
    ) -> BoxFuture<'_, Result<EventStream, InferenceError>> {
        async move {
            let tools = self.choose_tools(&model, &request).await?;
            let Prompt::Chat(chat) = &mut request.prompt else {
                return self.inner.generate(model, request).await;
            };
            if tools.is_empty() {
                return self.inner.generate(model, request).await;
            }
            let has_own_tools = !chat.tools.is_empty();
            chat.tools.extend(tools.iter().map(Tool::definition));
            // What is wrong with the request is told before the first event.
            let first = self.inner.generate(model.clone(), request.clone()).await?;
            let running = Loop {
                inner: self.inner.clone(),
                model,
                request,
                has_own_tools,
                limits: self.limits,
                runner: Runner::new(
                    self.pool.clone(),
                    self.approvals.clone(),
                    tools,
                    self.limits,
                ),
            };
            Ok(driven::stream(|events| running.run(first, events)))
        }
        .boxed()
    }
}

/// One request on its way.
struct Loop {
    inner: Arc<dyn Backend>,
    model: Arc<ModelCard>,
    request: GenerateRequest,
    /// The client brought tools, too, and answers calls of tools that no server here has.
    has_own_tools: bool,
    limits: Limits,
    runner: Runner,
}

impl Loop {
    async fn run(mut self, first: EventStream, mut events: Events) {
        if let Err(error) = self.turns(first, &mut events).await {
            events.error(error).await;
        }
    }

    async fn turns(
        &mut self,
        first: EventStream,
        events: &mut Events,
    ) -> Result<(), InferenceError> {
        let mut tally = Tally::default();
        let mut stream = first;
        let mut rounds = 0;
        loop {
            let mut turn = Turn::default();
            while let Some(event) = stream.next().await {
                let event = event?;
                tally.count(&event);
                if let Some(event) = turn.take(event, tally.is_first_turn()) {
                    events.send(event).await;
                }
            }
            drop(stream);
            if !turn.is_for_us(|name| self.runs(name)) || rounds > self.limits.rounds {
                for event in turn.ending() {
                    events.send(event).await;
                }
                if let Some(completed) = tally.completed() {
                    events.send(completed).await;
                }
                return Ok(());
            }
            rounds += 1;
            let mut results = Vec::with_capacity(turn.calls().len());
            for call in turn.calls() {
                results.push(self.runner.run(call, events).await);
            }
            let is_last = rounds >= self.limits.rounds
                || tally.elapsed().saturating_sub(self.runner.waited()) >= self.limits.time;
            if is_last {
                rounds = self.limits.rounds + 1;
            }
            if let Prompt::Chat(chat) = &mut self.request.prompt {
                go_on(chat, turn, results, is_last);
            }
            tally.next_turn();
            stream = self
                .inner
                .generate(self.model.clone(), self.request.clone())
                .await?;
        }
    }

    /// Whether a call of this name is ours to answer.
    fn runs(&self, name: &str) -> bool {
        self.runner.knows(name) || !self.has_own_tools
    }
}

/// Appends a turn and its results to the conversation.
fn go_on(chat: &mut ChatPrompt, turn: Turn, results: Vec<Message>, is_last: bool) {
    let begun = if chat.continue_final_message {
        chat.continue_final_message = false;
        chat.messages.pop()
    } else {
        None
    };
    chat.messages.push(turn.into_message(begun));
    chat.messages.extend(results);
    // That some tool is called was asked for once.
    chat.tool_choice = if is_last {
        ToolChoice::None
    } else {
        ToolChoice::Auto
    };
}

#[cfg(test)]
mod tests;
