//! Single messages: edited, deleted, and everything after one taken back.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use macmlx_store::conversations as store;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Conversation, ConversationSources, conversation_id};
use crate::{Problem, body::Body, reply::ErrorBody};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessagePatch {
    content: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TruncateRequest {
    /// The message goes, too.
    inclusive: bool,
}

/// Change what a message says.
#[utoipa::path(
    patch,
    path = "/x/conversations/{id}/messages/{message_id}",
    params(("id" = String, Path), ("message_id" = String, Path)),
    request_body = MessagePatch,
    responses(
        (status = 200, body = Conversation),
        (status = 404, description = "There is no such message", body = ErrorBody),
        (status = 409, description = "The conversation is being answered", body = ErrorBody)
    )
)]
pub(super) async fn patch_message(
    State(sources): State<Arc<ConversationSources>>,
    Path(place): Path<(String, String)>,
    Body(patch): Body<MessagePatch>,
) -> Result<Json<Conversation>, Problem> {
    edit(&sources, place, move |messages, index| {
        messages[index].content = patch.content;
    })
    .await
}

/// Delete a message.
#[utoipa::path(
    delete,
    path = "/x/conversations/{id}/messages/{message_id}",
    params(("id" = String, Path), ("message_id" = String, Path)),
    responses(
        (status = 200, body = Conversation),
        (status = 404, description = "There is no such message", body = ErrorBody),
        (status = 409, description = "The conversation is being answered", body = ErrorBody)
    )
)]
pub(super) async fn delete_message(
    State(sources): State<Arc<ConversationSources>>,
    Path(place): Path<(String, String)>,
) -> Result<Json<Conversation>, Problem> {
    edit(&sources, place, |messages, index| {
        messages.remove(index);
    })
    .await
}

/// Take back all that came after a message.
#[utoipa::path(
    post,
    path = "/x/conversations/{id}/messages/{message_id}/truncate",
    params(("id" = String, Path), ("message_id" = String, Path)),
    request_body = TruncateRequest,
    responses(
        (status = 200, body = Conversation),
        (status = 404, description = "There is no such message", body = ErrorBody),
        (status = 409, description = "The conversation is being answered", body = ErrorBody)
    )
)]
pub(super) async fn truncate_conversation(
    State(sources): State<Arc<ConversationSources>>,
    Path(place): Path<(String, String)>,
    Body(TruncateRequest { inclusive }): Body<TruncateRequest>,
) -> Result<Json<Conversation>, Problem> {
    edit(&sources, place, move |messages, index| {
        messages.truncate(index + usize::from(!inclusive));
    })
    .await
}

/// Edits the messages, given where the one is that is named.
async fn edit(
    sources: &ConversationSources,
    (id, message_id): (String, String),
    edit: impl FnOnce(&mut Vec<store::Message>, usize) + Send + 'static,
) -> Result<Json<Conversation>, Problem> {
    let id = conversation_id(&id)?;
    let _turn = sources.turn(id).await?;
    let conversation = sources
        .edit(id, move |conversation| {
            let wanted = message_id.parse().ok();
            let index = conversation
                .messages
                .iter()
                .position(|message| Some(message.id) == wanted)
                .ok_or_else(|| {
                    Problem::not_found(
                        "message_not_found",
                        format!("there is no message `{message_id}` in this conversation"),
                    )
                })?;
            edit(&mut conversation.messages, index);
            Ok(())
        })
        .await?;
    Ok(Json(conversation.into()))
}
