//! Chat: a conversation is asked and answered, with tools and their approval, and stored as it goes.

mod answer;
mod event;
mod prompt;
mod run;
mod sampling;

use std::{convert::Infallible, sync::Arc, time::Instant};

use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::sse::{self, Sse},
};
use futures::{Stream, stream};
use macmlx_inference::{
    Backend, Catalog, GenerateRequest, InferenceError, ModelCard, ModelTask, Prompt, ToolChoice,
};
use macmlx_mcp::{Approvals, DecideError, Decision, Pool};
use macmlx_settings::{ModelParameters, ModelParametersFolder};
use macmlx_store::conversations::{self as store, Role};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use self::{event::ChatEvent, run::Run, sampling::Defaults};
use crate::{
    Problem,
    body::Body,
    conversations::{ConversationSources, conversation_id},
    events, parameters,
    reply::ErrorBody,
};

/// Events that may wait for a reader who is slower than the model.
const CAPACITY: usize = 64;

/// What the chat routes act on.
#[derive(Clone)]
pub struct Chat {
    pub conversations: Arc<ConversationSources>,
    /// What answers: the engine, with the tool loop around it.
    pub backend: Arc<dyn Backend>,
    pub catalog: Arc<dyn Catalog>,
    /// The parameters of each model, for values that a conversation leaves open.
    pub parameters: Arc<ModelParametersFolder>,
    pub pool: Arc<Pool>,
    pub approvals: Arc<Approvals>,
}

impl std::fmt::Debug for Chat {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Chat").finish_non_exhaustive()
    }
}

/// `/x/chat`.
pub fn routes() -> OpenApiRouter<Arc<Chat>> {
    OpenApiRouter::new()
        .routes(routes!(chat))
        .routes(routes!(decide_approval))
}

/// A question, or the wish for another answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChatRequest {
    conversation_id: String,
    /// The question. Without one the conversation is answered as it stands.
    content: Option<String>,
    /// The model that answers from now on.
    model: Option<String>,
    /// Parameters of this answer; they come before those of the conversation.
    parameters: Option<ModelParameters>,
    /// Switches reasoning on or off for this answer. A model that cannot be switched refuses it.
    reasoning: Option<bool>,
    /// Whether MCP tools are offered, which they are unless this says no.
    use_tools: Option<bool>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalRequest {
    decision: ApprovalDecision,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ApprovalDecision {
    Deny,
    AllowOnce,
    /// This call, and all later ones of its tool.
    AllowAlways,
}

/// Ask, and watch the answer: server-sent events until it is over. A client that leaves stops the
/// answer; what was written is kept.
#[utoipa::path(
    post,
    path = "/x/chat",
    request_body = ChatRequest,
    responses(
        (status = 200, body = ChatEvent, content_type = "text/event-stream"),
        (status = 400, description = "It cannot be asked like this", body = ErrorBody),
        (status = 404, description = "There is no such conversation or model", body = ErrorBody),
        (status = 409, description = "The conversation is being answered", body = ErrorBody)
    )
)]
async fn chat(
    State(chat): State<Arc<Chat>>,
    Body(asked): Body<ChatRequest>,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Problem> {
    let begun = Instant::now();
    let id = conversation_id(&asked.conversation_id)?;
    if let Some(parameters) = &asked.parameters {
        parameters::check(parameters, "parameters.")?;
    }
    let turn = chat.conversations.turn(id).await?;
    let conversation = chat.conversations.get(id).await?;
    let model = chat.model(&asked, &conversation).await?;
    let (sender, receiver) = mpsc::channel(CAPACITY);
    let conversation = chat
        .take_question(&asked, &model, conversation, &sender)
        .await?;
    let request = chat.request(&asked, &model, &conversation).await?;
    let run = Run {
        chat,
        conversation: id,
        model,
        events: sender,
        begun,
        turn,
    };
    tokio::spawn(run.answer(request));
    let stream = stream::unfold(receiver, |mut receiver| async move {
        let event = receiver.recv().await?;
        Some((event, receiver))
    });
    Ok(events::sse(stream))
}

/// Decide about a tool call that waits.
#[utoipa::path(
    post,
    path = "/x/chat/approvals/{call_id}",
    params(("call_id" = String, Path)),
    request_body = ApprovalRequest,
    responses(
        (status = 204),
        (status = 404, description = "No call waits under this id", body = ErrorBody)
    )
)]
async fn decide_approval(
    State(chat): State<Arc<Chat>>,
    Path(call_id): Path<String>,
    Body(ApprovalRequest { decision }): Body<ApprovalRequest>,
) -> Result<StatusCode, Problem> {
    let decision = match decision {
        ApprovalDecision::Deny => Decision::Deny,
        ApprovalDecision::AllowOnce => Decision::AllowOnce,
        ApprovalDecision::AllowAlways => Decision::AllowAlways,
    };
    match chat.approvals.decide(&call_id, decision).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error @ DecideError::NotWaiting { .. }) => {
            Err(Problem::not_found("approval_not_found", error.to_string()))
        }
        Err(error @ DecideError::NotStored(_)) => {
            Err(Problem::failed("not_stored", error.to_string()))
        }
    }
}

impl Chat {
    /// The model that is to answer: the one that is asked for, which must be here, else the
    /// conversation's. A conversation that has none, or whose model is gone, gets the one that
    /// answers where none is named.
    async fn model(
        &self,
        asked: &ChatRequest,
        conversation: &store::Conversation,
    ) -> Result<Arc<ModelCard>, Problem> {
        let catalog = self.catalog.clone();
        let (asked, remembered) = (asked.model.clone(), conversation.model_id.clone());
        let chosen = tokio::task::spawn_blocking(move || {
            let found = match (asked, remembered) {
                (Some(asked), _) => catalog.find(&asked)?,
                (None, Some(remembered)) => match catalog.find(&remembered) {
                    Err(InferenceError::ModelNotFound { .. }) => {
                        catalog.choose(None, ModelTask::Generate)?
                    }
                    found => found?,
                },
                (None, None) => catalog.choose(None, ModelTask::Generate)?,
            };
            found.expect(ModelTask::Generate)?;
            Ok::<_, InferenceError>(found)
        });
        Ok(chosen.await??)
    }

    /// Stores the question, and which model answers from now on.
    async fn take_question(
        &self,
        asked: &ChatRequest,
        model: &ModelCard,
        conversation: store::Conversation,
        events: &mpsc::Sender<ChatEvent>,
    ) -> Result<store::Conversation, Problem> {
        if asked.content.is_none() && !prompt::can_be_answered(&conversation) {
            return Err(Problem::conflict(
                "wrong_state",
                "there is nothing to answer: send `content`, or take the last answer back first",
            ));
        }
        if asked
            .content
            .as_ref()
            .is_some_and(|text| text.trim().is_empty())
        {
            return Err(Problem::invalid_param("content", "`content` is empty"));
        }
        let question = asked
            .content
            .clone()
            .map(|content| store::Message::new(Role::User, content));
        let (model, is_chosen) = (model.id.clone(), asked.model.is_some());
        let stored = question.clone();
        let title = conversation.title;
        let conversation = self
            .conversations
            .edit(conversation.id, move |conversation| {
                if is_chosen || conversation.model_id.is_none() {
                    conversation.model_id = Some(model);
                }
                conversation.messages.extend(stored);
                conversation.take_title();
                Ok(())
            })
            .await?;
        // The channel is empty yet, and its reader has not come.
        if let Some(question) = question {
            let _ = events.try_send(ChatEvent::Message {
                message: Box::new(question.into()),
            });
        }
        if conversation.title != title {
            let _ = events.try_send(ChatEvent::Title {
                title: conversation.title.clone(),
            });
        }
        Ok(conversation)
    }

    async fn request(
        &self,
        asked: &ChatRequest,
        model: &Arc<ModelCard>,
        conversation: &store::Conversation,
    ) -> Result<GenerateRequest, Problem> {
        let overrides = asked.parameters.clone().unwrap_or_default();
        let of_model = self.parameters.get(&model.id);
        let own_prompt = Some(&conversation.system_prompt).filter(|prompt| !prompt.is_empty());
        let system_prompt = overrides
            .system_prompt
            .clone()
            .or_else(|| own_prompt.cloned())
            .or_else(|| of_model.system_prompt.clone())
            .unwrap_or_default();
        let mut chat = prompt::chat(conversation, &system_prompt);
        if asked.use_tools == Some(false) {
            chat.tool_choice = ToolChoice::None;
        }
        let mut request = GenerateRequest::new(&*model.id, Prompt::Chat(chat));
        request.reasoning.enabled = asked.reasoning;
        let parameters = overrides.or(conversation.parameters.clone().unwrap_or_default());
        parameters::fill_in(&mut request, &parameters);
        // The parameters of the model are filled in behind the backend.
        if of_model.sampling.temperature.is_none() && of_model.sampling.top_p.is_none() {
            let (catalog, model) = (self.catalog.clone(), model.clone());
            let defaults =
                tokio::task::spawn_blocking(move || Defaults::of(&*catalog, &model)).await?;
            defaults.fill_in(&mut request.sampling);
        }
        Ok(request)
    }
}
