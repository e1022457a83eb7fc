//! Errors in Ollama's shape: `{"error": "…"}`.

use serde_json::json;

use crate::{Error, Reply, openai};

/// The reply to a request that failed before its first frame.
pub fn reply(error: &Error) -> Reply {
    let openai = openai::error::reply(error);
    Reply {
        body: json!({"error": error.to_string()}),
        ..openai
    }
}
