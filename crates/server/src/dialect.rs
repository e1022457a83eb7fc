//! Whose words a request wants to be answered in, where no handler has seen it yet.

use axum::{extract::Request, response::Response};
use macmlx_protocol::{Dialect, Error};

use crate::exchange::respond;

/// Returns the dialect of a request, by its path and by the header that all of Anthropic's clients
/// send.
pub(crate) fn of(request: &Request) -> Dialect {
    let path = request.uri().path();
    let is_messages = path.trim_start_matches("/v1").starts_with("/messages");
    let is_below = |folder: &str| {
        path.strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // The older of LM Studio's own routes are in OpenAI's words.
    if is_below("/api/v0") {
        Dialect::OpenAi
    } else if is_below("/api/v1") {
        Dialect::LmStudio
    } else if is_below("/api") {
        Dialect::Ollama
    } else if is_messages
        || is_below("/anthropic")
        || request.headers().contains_key("anthropic-version")
    {
        Dialect::Anthropic
    } else {
        Dialect::OpenAi
    }
}

/// The reply to a request that no handler saw.
pub(crate) fn refuse(dialect: Dialect, error: &Error) -> Response {
    respond(dialect.error_reply(error))
}
