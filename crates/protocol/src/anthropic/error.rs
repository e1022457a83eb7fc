//! Errors in Anthropic's shape: `{"type": "error", "error": {"type", "message"}}`.

use serde_json::json;

use crate::{Error, Reply, openai};

/// The reply to a request that failed before its first frame.
pub fn reply(error: &Error) -> Reply {
    let openai = openai::error::reply(error);
    let kind = openai.body["error"]["type"].clone();
    Reply {
        body: json!({
            "type": "error",
            "error": {"type": kind, "message": error.to_string()},
        }),
        ..openai
    }
}
