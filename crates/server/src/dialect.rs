//! Whose words a request wants to be answered in, where no handler has seen it yet.

use axum::{extract::Request, response::Response};
use macmlx_protocol::{Dialect, Error, Reply, openai};
use serde_json::json;

use crate::exchange::respond;

/// In whose words a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    Client(Dialect),
    /// Those of the owner's own routes, below `/x`.
    Control,
}

/// Returns the words for a request, by its path and by the header that all of Anthropic's clients
/// send.
pub(crate) fn words(request: &Request) -> Words {
    if is_below(request.uri().path(), "/x") {
        Words::Control
    } else {
        Words::Client(of(request))
    }
}

/// Returns the dialect of a client's request.
pub(crate) fn of(request: &Request) -> Dialect {
    let path = request.uri().path();
    let is_messages = path.trim_start_matches("/v1").starts_with("/messages");
    // The older of LM Studio's own routes are in OpenAI's words.
    if is_below(path, "/api/v0") {
        Dialect::OpenAi
    } else if is_below(path, "/api/v1") {
        Dialect::LmStudio
    } else if is_below(path, "/api") {
        Dialect::Ollama
    } else if is_messages
        || is_below(path, "/anthropic")
        || request.headers().contains_key("anthropic-version")
    {
        Dialect::Anthropic
    } else {
        Dialect::OpenAi
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The reply to a request that no handler saw.
pub(crate) fn refuse(words: Words, error: &Error) -> Response {
    respond(match words {
        Words::Client(dialect) => dialect.error_reply(error),
        Words::Control => control_reply(error),
    })
}

/// What OpenAI's clients are told, in the shape that control routes have.
fn control_reply(error: &Error) -> Reply {
    let reply = openai::error::reply(error);
    let told = &reply.body["error"];
    let code = told["code"].as_str().unwrap_or("invalid_request");
    let body = json!({"error": {"code": code, "message": told["message"]}});
    Reply { body, ..reply }
}
