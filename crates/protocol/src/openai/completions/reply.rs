//! A completion on the wire.

use serde::Serialize;
use utoipa::ToSchema;

use crate::openai::{logprobs::Legacy, nullable::Nullable, usage};

/// A whole completion, or a piece of one.
#[derive(Debug, Serialize, ToSchema)]
pub struct TextCompletion {
    pub(super) id: String,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) system_fingerprint: String,
    /// The choices. A piece has one, or none where it tells the usage.
    pub(super) choices: Vec<CompletionChoice>,
    /// Of pieces: only if asked for, `null` in all but the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<usage::Usage>)]
    pub(super) usage: Option<Nullable<usage::Usage>>,
}

/// One text, or a piece of it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CompletionChoice {
    pub(super) index: usize,
    pub(super) text: String,
    pub(super) logprobs: Option<Legacy>,
    /// `stop` or `length`; `null` in all pieces but a choice's last.
    pub(super) finish_reason: Option<&'static str>,
}
