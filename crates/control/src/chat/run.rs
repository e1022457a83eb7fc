//! One answer from its request to its last stored word, in a task of its own: it outlives the
//! reader by as long as it takes to store what there is.

use std::{collections::HashMap, sync::Arc, time::Instant};

use futures::StreamExt;
use macmlx_inference::{GenerateRequest, InferenceError, ModelCard};
use macmlx_store::conversations::{Ending, Message};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{
    Chat,
    answer::{Answer, KnownTool, Step},
    event::ChatEvent,
};
use crate::{Problem, conversations::Turn};

pub(super) struct Run {
    pub(super) chat: Arc<Chat>,
    pub(super) conversation: Uuid,
    /// Answers.
    pub(super) model: Arc<ModelCard>,
    /// The channel to the client; it is closed once the client is gone.
    pub(super) events: mpsc::Sender<ChatEvent>,
    /// When the question came.
    pub(super) begun: Instant,
    /// The right to change the conversation, held until all is stored.
    pub(super) turn: Turn,
}

impl Run {
    pub(super) async fn answer(self, request: GenerateRequest) {
        let tools = self.tools();
        let tool = |name: &str| tools.get(name).cloned().unwrap_or_default();
        let mut answer = Answer::new(self.model.id.clone(), self.begun, &tool);
        // The message is stored at the start, so that it is there even if the client has left by
        // now.
        let begun = answer.begin();
        let ended = tokio::select! {
            biased;
            () = self.events.closed() => None,
            ended = self.generate(request, begun, &mut answer) => Some(ended),
        };
        let now = Instant::now();
        match ended {
            Some(Ok(())) => {}
            None => {
                if let Some(message) = answer.break_off(Ending::Cancelled, None, now) {
                    self.store_last(message).await;
                }
            }
            Some(Err(problem)) => {
                let text = problem.message().to_owned();
                if let Some(message) = answer.break_off(Ending::Error, Some(text), now) {
                    self.store_last(message).await;
                }
                self.tell(ChatEvent::Error {
                    code: problem.code().into(),
                    message: problem.message().into(),
                })
                .await;
            }
        }
        drop(self.turn);
    }

    async fn generate(
        &self,
        request: GenerateRequest,
        begun: ChatEvent,
        answer: &mut Answer<'_>,
    ) -> Result<(), Problem> {
        self.tell(begun).await;
        let backend = &self.chat.backend;
        if backend
            .loaded()
            .iter()
            .all(|model| model.id != self.model.id)
        {
            self.tell(ChatEvent::Loading {
                model: self.model.id.clone(),
            })
            .await;
        }
        let mut events = backend.generate(self.model.clone(), request).await?;
        let mut is_complete = false;
        while let Some(event) = events.next().await {
            for step in answer.take(event?, Instant::now()) {
                match step {
                    Step::Tell(event) => {
                        is_complete |= matches!(event, ChatEvent::Finished { .. });
                        self.tell(event).await;
                    }
                    Step::Store(message) => self.store(*message).await?,
                }
            }
        }
        if is_complete {
            Ok(())
        } else {
            let message = "the answer broke off".into();
            Err(InferenceError::Engine { message }.into())
        }
    }

    /// Sends an event. The client may be gone; then the answer is being cancelled.
    async fn tell(&self, event: ChatEvent) {
        let _ = self.events.send(event).await;
    }

    async fn store(&self, message: Message) -> Result<(), Problem> {
        let stored = message.clone();
        self.chat
            .conversations
            .edit(self.conversation, move |conversation| {
                conversation.put(stored);
                Ok(())
            })
            .await?;
        self.tell(ChatEvent::Message {
            message: Box::new(message.into()),
        })
        .await;
        Ok(())
    }

    /// Stores what there is of an answer that is over already.
    async fn store_last(&self, message: Message) {
        if let Err(problem) = self.store(message).await {
            tracing::error!(
                conversation = %self.conversation,
                error = problem.message(),
                "an answer could not be stored"
            );
        }
    }

    /// Returns the known tools, with the server that offers each.
    fn tools(&self) -> HashMap<String, KnownTool> {
        let servers = self.chat.pool.servers();
        let tools = servers.into_iter().flat_map(|server| server.tools);
        tools
            .map(|tool| {
                let known = KnownTool {
                    server: Some(tool.server),
                    title: tool.title,
                };
                (tool.full_name, known)
            })
            .collect()
    }
}
