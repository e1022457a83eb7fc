//! Conversations: listed, searched, made, renamed, rewound and deleted.

mod messages;
mod turns;
mod wire;

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use macmlx_settings::ModelParameters;
use macmlx_store::conversations::{self as store, Conversations, Role};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use crate::{
    Problem,
    body::{Asked, Body},
    events::{Event, Events},
    parameters,
    reply::ErrorBody,
};

pub(crate) use turns::Turn;
pub(crate) use wire::{Conversation, Message, id_text};

use turns::Turns;
use wire::ConversationList;

/// The conversations, and which of them are being answered.
#[derive(Debug)]
pub struct ConversationSources {
    store: Arc<Conversations>,
    events: Arc<Events>,
    turns: Turns,
}

/// `/x/conversations`.
pub fn routes() -> OpenApiRouter<Arc<ConversationSources>> {
    OpenApiRouter::new()
        .routes(routes!(list_conversations, create_conversation))
        .routes(routes!(
            get_conversation,
            patch_conversation,
            delete_conversation
        ))
        .routes(routes!(messages::patch_message, messages::delete_message))
        .routes(routes!(messages::truncate_conversation))
}

impl ConversationSources {
    pub fn new(store: Arc<Conversations>, events: Arc<Events>) -> Self {
        Self {
            store,
            events,
            turns: Turns::default(),
        }
    }

    /// Keeps everyone else from answering the conversation or changing its messages.
    pub(crate) async fn turn(&self, id: Uuid) -> Result<Turn, Problem> {
        self.turns.take(id).await
    }

    pub(crate) async fn get(&self, id: Uuid) -> Result<store::Conversation, Problem> {
        let store = self.store.clone();
        Ok(tokio::task::spawn_blocking(move || store.get(id)).await??)
    }

    /// Edits a conversation, on disk, and tells everyone who watches.
    pub(crate) async fn edit(
        &self,
        id: Uuid,
        edit: impl FnOnce(&mut store::Conversation) -> Result<(), Problem> + Send + 'static,
    ) -> Result<store::Conversation, Problem> {
        let store = self.store.clone();
        let conversation = tokio::task::spawn_blocking(move || store.edit(id, edit)).await??;
        self.announce(id);
        Ok(conversation)
    }

    fn announce(&self, id: Uuid) {
        self.events
            .publish(Event::ConversationChanged { id: id_text(id) });
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        let message = error.to_string();
        match error {
            store::Error::NotFound { .. } => Self::not_found("conversation_not_found", message),
            store::Error::Exists { .. } => Self::conflict("exists", message),
            store::Error::Unreadable { .. } => Self::failed("conversation_unreadable", message),
            store::Error::Io { .. } => Self::failed("failed", message),
        }
    }
}

/// The id in a path or a body; what is no id names no conversation.
pub(crate) fn conversation_id(text: &str) -> Result<Uuid, Problem> {
    Uuid::try_parse(text).map_err(|_| {
        Problem::not_found(
            "conversation_not_found",
            format!("there is no conversation `{text}`"),
        )
    })
}

/// What to look for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Search {
    /// Words that must all be in the title or the messages, whatever the case.
    search: Option<String>,
}

/// A conversation to make; everything may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewConversation {
    title: Option<String>,
    #[serde(rename = "modelID")]
    model_id: Option<String>,
    system_prompt: Option<String>,
    parameters: Option<ModelParameters>,
    messages: Option<Vec<NewMessage>>,
}

/// A message to begin with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewMessage {
    role: Role,
    content: String,
}

/// What to change; null takes a value away.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConversationPatch {
    /// Null or empty: the first words of the first question.
    #[serde(default, deserialize_with = "empty_if_null")]
    title: Option<String>,
    #[serde(rename = "modelID", default, deserialize_with = "empty_if_null")]
    model_id: Option<String>,
    #[serde(default, deserialize_with = "empty_if_null")]
    system_prompt: Option<String>,
    /// A merge patch of its own: null unsets one parameter.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<ModelParameters>)]
    parameters: Option<Value>,
}

/// Null is as good as no text.
fn empty_if_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(Some(text.unwrap_or_default()))
}

/// Tells a value that is null from one that is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// List conversations, newest first.
#[utoipa::path(
    get,
    path = "/x/conversations",
    params(Search),
    responses((status = 200, body = ConversationList))
)]
async fn list_conversations(
    State(sources): State<Arc<ConversationSources>>,
    Asked(Search { search }): Asked<Search>,
) -> Result<Json<ConversationList>, Problem> {
    let store = sources.store.clone();
    let list = tokio::task::spawn_blocking(move || store.list(search.as_deref())).await??;
    Ok(Json(list.into()))
}

/// Begin a conversation.
#[utoipa::path(
    post,
    path = "/x/conversations",
    request_body = NewConversation,
    responses(
        (status = 201, body = Conversation),
        (status = 400, description = "It cannot begin like this", body = ErrorBody)
    )
)]
async fn create_conversation(
    State(sources): State<Arc<ConversationSources>>,
    Body(new): Body<NewConversation>,
) -> Result<(StatusCode, Json<Conversation>), Problem> {
    let conversation = begin(new)?;
    let store = sources.store.clone();
    let conversation = tokio::task::spawn_blocking(move || {
        store.create(&conversation)?;
        Ok::<_, store::Error>(conversation)
    })
    .await??;
    sources.announce(conversation.id);
    Ok((StatusCode::CREATED, Json(conversation.into())))
}

fn begin(new: NewConversation) -> Result<store::Conversation, Problem> {
    if let Some(parameters) = &new.parameters {
        parameters::check(parameters, "parameters.")?;
    }
    let messages = new.messages.unwrap_or_default();
    if let Some(index) = messages.iter().position(|one| one.role == Role::Tool) {
        let param = format!("messages[{index}].role");
        let message = "what a tool said belongs to the message that called it";
        return Err(Problem::invalid_param(param, message));
    }
    let mut conversation = store::Conversation::new();
    conversation.model_id = new.model_id.filter(|id| !id.is_empty());
    conversation.system_prompt = new.system_prompt.unwrap_or_default();
    conversation.parameters = new.parameters;
    conversation.messages = messages
        .into_iter()
        .map(|message| store::Message::new(message.role, message.content))
        .collect();
    match new.title.as_deref().map(str::trim) {
        Some(title) if !title.is_empty() => title.clone_into(&mut conversation.title),
        _ => {
            conversation.take_title();
        }
    }
    Ok(conversation)
}

/// Read a conversation.
#[utoipa::path(
    get,
    path = "/x/conversations/{id}",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Conversation),
        (status = 404, description = "There is no such conversation", body = ErrorBody)
    )
)]
async fn get_conversation(
    State(sources): State<Arc<ConversationSources>>,
    Path(id): Path<String>,
) -> Result<Json<Conversation>, Problem> {
    let conversation = sources.get(conversation_id(&id)?).await?;
    Ok(Json(conversation.into()))
}

/// Change a conversation's title, model, system prompt or parameters.
#[utoipa::path(
    patch,
    path = "/x/conversations/{id}",
    params(("id" = String, Path)),
    request_body = ConversationPatch,
    responses(
        (status = 200, body = Conversation),
        (status = 400, description = "It cannot be like this", body = ErrorBody),
        (status = 404, description = "There is no such conversation", body = ErrorBody)
    )
)]
async fn patch_conversation(
    State(sources): State<Arc<ConversationSources>>,
    Path(id): Path<String>,
    Body(patch): Body<ConversationPatch>,
) -> Result<Json<Conversation>, Problem> {
    let id = conversation_id(&id)?;
    let conversation = sources
        .edit(id, move |conversation| apply(patch, conversation))
        .await?;
    Ok(Json(conversation.into()))
}

fn apply(patch: ConversationPatch, conversation: &mut store::Conversation) -> Result<(), Problem> {
    if let Some(title) = patch.title {
        match title.trim() {
            "" => conversation.forget_title(),
            title => title.clone_into(&mut conversation.title),
        }
    }
    if let Some(model) = patch.model_id {
        conversation.model_id = Some(model).filter(|id| !id.is_empty());
    }
    if let Some(prompt) = patch.system_prompt {
        conversation.system_prompt = prompt;
    }
    match patch.parameters {
        None => {}
        Some(Value::Null) => conversation.parameters = None,
        Some(Value::Object(changes)) => {
            let now = conversation.parameters.take().unwrap_or_default();
            let now = now
                .with_patch(&changes)
                .map_err(|error| parameters::refusal(error, "parameters."))?;
            parameters::check(&now, "parameters.")?;
            conversation.parameters = (now != ModelParameters::default()).then_some(now);
        }
        Some(_) => {
            let message = "`parameters` is a JSON object of parameters, or null";
            return Err(Problem::invalid_param("parameters", message));
        }
    }
    Ok(())
}

/// Delete a conversation and its images.
#[utoipa::path(
    delete,
    path = "/x/conversations/{id}",
    params(("id" = String, Path)),
    responses(
        (status = 204),
        (status = 404, description = "There is no such conversation", body = ErrorBody),
        (status = 409, description = "It is being answered", body = ErrorBody)
    )
)]
async fn delete_conversation(
    State(sources): State<Arc<ConversationSources>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let id = conversation_id(&id)?;
    let turn = sources.turn(id).await?;
    let store = sources.store.clone();
    tokio::task::spawn_blocking(move || store.remove(id)).await??;
    drop(turn);
    sources
        .events
        .publish(Event::ConversationRemoved { id: id_text(id) });
    Ok(StatusCode::NO_CONTENT)
}
