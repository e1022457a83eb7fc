//! The TCP door: whether other programs of this machine, or others, can reach macMLX.

use std::sync::Arc;

use axum::{Json, extract::State};
use futures::future::BoxFuture;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Problem, reply::ErrorBody};

/// The door as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DoorState {
    pub state: Openness,
    /// Base URL for programs of this machine.
    #[schema(required)]
    pub url: Option<String>,
    /// What it is bound to, with the port.
    #[schema(required)]
    pub address: Option<String>,
    /// The port in the settings, which another program may hold.
    pub wanted_port: u16,
    /// Clients must send a key.
    pub needs_api_key: bool,
    /// Why it could not be opened.
    #[schema(required)]
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Openness {
    Open,
    Closed,
    /// It was to be opened and could not.
    Failed,
}

/// Why a door stays closed, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClosedDoor {
    PortTaken(String),
    /// Other machines could come in, and no key keeps them out.
    NeedsApiKey(String),
    Other(String),
}

impl From<ClosedDoor> for Problem {
    fn from(closed: ClosedDoor) -> Self {
        let (code, message) = match closed {
            ClosedDoor::PortTaken(message) => ("port_taken", message),
            ClosedDoor::NeedsApiKey(message) => ("api_key_required", message),
            ClosedDoor::Other(message) => ("door_failed", message),
        };
        Self::conflict(code, message)
    }
}

/// Opens and closes the door.
pub trait Door: Send + Sync + 'static {
    fn state(&self) -> DoorState;

    /// Opens it as the settings say; an open door stays as it is.
    fn open(&self) -> BoxFuture<'_, Result<DoorState, ClosedDoor>>;

    /// Closes it: running answers get a few seconds, models and downloads stay.
    fn close(&self) -> BoxFuture<'_, DoorState>;
}

/// `/x/door`.
pub fn routes() -> OpenApiRouter<Arc<dyn Door>> {
    OpenApiRouter::new()
        .routes(routes!(door))
        .routes(routes!(open_door))
        .routes(routes!(close_door))
}

/// Tell whether the TCP door is open.
#[utoipa::path(get, path = "/x/door", responses((status = 200, body = DoorState)))]
async fn door(State(door): State<Arc<dyn Door>>) -> Json<DoorState> {
    Json(door.state())
}

/// Open the TCP door as the settings say.
#[utoipa::path(
    post,
    path = "/x/door/open",
    responses(
        (status = 200, body = DoorState),
        (
            status = 409,
            description = "`port_taken`, `api_key_required` or `door_failed`",
            body = ErrorBody
        )
    )
)]
async fn open_door(State(door): State<Arc<dyn Door>>) -> Result<Json<DoorState>, Problem> {
    Ok(Json(door.open().await?))
}

/// Close the TCP door; what is loaded and downloading goes on.
#[utoipa::path(post, path = "/x/door/close", responses((status = 200, body = DoorState)))]
async fn close_door(State(door): State<Arc<dyn Door>>) -> Json<DoorState> {
    Json(door.close().await)
}
