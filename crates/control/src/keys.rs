//! The keys that clients of the TCP door send.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use macmlx_inference::rfc3339;
use macmlx_settings::{ApiKeys, ApiKeysError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    Problem,
    body::Body,
    events::{Event, Events},
    reply::ErrorBody,
};

/// What the key routes act on.
#[derive(Debug)]
pub struct Keys {
    pub keys: Arc<ApiKeys>,
    pub events: Arc<Events>,
}

/// `/x/keys`.
pub fn routes() -> OpenApiRouter<Arc<Keys>> {
    OpenApiRouter::new()
        .routes(routes!(keys, add_key))
        .routes(routes!(delete_key))
}

#[derive(Debug, Serialize, ToSchema)]
struct KeyList {
    keys: Vec<KeyInfo>,
}

/// A key, of which only the hash is kept.
#[derive(Debug, Serialize, ToSchema)]
struct KeyInfo {
    name: String,
    created: String,
    /// When the key was used last since the application started.
    #[schema(required)]
    last_used: Option<String>,
    /// Enough of the key to know it by.
    hint: String,
}

/// The client that a new key is for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct KeyName {
    name: String,
}

/// A key, shown this once.
#[derive(Serialize, ToSchema)]
struct NewKey {
    name: String,
    key: String,
}

/// List the keys.
#[utoipa::path(get, path = "/x/keys", responses((status = 200, body = KeyList)))]
async fn keys(State(state): State<Arc<Keys>>) -> Result<Json<KeyList>, Problem> {
    let keys = tokio::task::spawn_blocking(move || {
        let keys = state.keys.list()?.into_iter().map(|key| KeyInfo {
            created: rfc3339(key.created_unix),
            last_used: state.keys.last_used(&key.sha256).map(rfc3339),
            name: key.name,
            hint: key.hint,
        });
        Ok::<_, ApiKeysError>(keys.collect())
    });
    Ok(Json(KeyList { keys: keys.await?? }))
}

/// Make a key.
#[utoipa::path(
    post,
    path = "/x/keys",
    request_body = KeyName,
    responses(
        (status = 201, body = NewKey),
        (status = 400, body = ErrorBody),
        (status = 409, description = "The name is taken", body = ErrorBody)
    )
)]
async fn add_key(
    State(state): State<Arc<Keys>>,
    Body(KeyName { name }): Body<KeyName>,
) -> Result<(StatusCode, Json<NewKey>), Problem> {
    let keys = state.keys.clone();
    let new = tokio::task::spawn_blocking(move || {
        let key = keys.add(&name)?;
        let name = name.trim().to_owned();
        Ok::<_, ApiKeysError>(NewKey { name, key })
    });
    let new = new.await??;
    state.events.publish(Event::KeysChanged);
    Ok((StatusCode::CREATED, Json(new)))
}

/// Make a key useless, from the next request on.
#[utoipa::path(
    delete,
    path = "/x/keys/{name}",
    params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody))
)]
async fn delete_key(
    State(state): State<Arc<Keys>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let (keys, wanted) = (state.keys.clone(), name.clone());
    let removed = tokio::task::spawn_blocking(move || keys.remove(&wanted)).await??;
    if !removed {
        let message = format!("there is no key named `{name}`");
        return Err(Problem::not_found("key_not_found", message));
    }
    state.events.publish(Event::KeysChanged);
    Ok(StatusCode::NO_CONTENT)
}

impl From<ApiKeysError> for Problem {
    fn from(error: ApiKeysError) -> Self {
        let message = error.to_string();
        match error {
            ApiKeysError::BadName => Self::invalid_param("name", message),
            ApiKeysError::Taken { .. } => Self::conflict("exists", message),
            ApiKeysError::Unreadable { .. } => Self::conflict("keys_unreadable", message),
            ApiKeysError::Io { .. } => Self::failed("keys_failed", message),
        }
    }
}
