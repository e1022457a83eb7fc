//! What a model may call.

use serde_json::{Value, json};

use super::{
    Api::{Chat, Completions, Infill, Messages, OllamaChat, OllamaGenerate, Responses},
    GENERATING, Word,
    value::{asks_nothing, is_empty, is_false, never},
    word,
};

const WITH_TURNS: &[super::Api] = &[Chat, Responses, Messages, OllamaChat];
const AS_IT_STANDS: &[super::Api] = &[Completions, Infill, OllamaGenerate];
const NO_TURNS: &str = "a prompt calls no tools; use /v1/chat/completions or /api/chat";

pub(super) const WORDS: &[Word] = &[
    word(&["tools"])
        .read(WITH_TURNS, &["tools"])
        .refused(AS_IT_STANDS, NO_TURNS)
        .unless(is_empty),
    word(&["tool_choice"])
        .read(WITH_TURNS, &["tool_choice"])
        .refused(AS_IT_STANDS, NO_TURNS)
        .unless(is_free),
    word(&["functions"])
        .read(&[Chat, OllamaChat], &["functions"])
        .rewritten(&[Responses, Messages], |functions| {
            Ok(vec![("tools", functions.clone())])
        })
        .refused(AS_IT_STANDS, NO_TURNS)
        .unless(is_empty),
    word(&["function_call"])
        .read(&[Chat, OllamaChat], &["function_call"])
        .rewritten(&[Responses, Messages], |call| {
            Ok(vec![match &call["name"] {
                Value::String(name) => ("tool_choice", json!({"type": "function", "name": name})),
                _ => ("tool_choice", call.clone()),
            }])
        })
        .refused(AS_IT_STANDS, NO_TURNS)
        .unless(is_free),
    word(&["parallel_tool_calls"])
        .read(WITH_TURNS, &["parallel_tool_calls"])
        .harmless(AS_IT_STANDS, "nothing is called"),
    word(&["disable_parallel_tool_use"])
        .rewritten(WITH_TURNS, |disabled| {
            let disabled = disabled
                .as_bool()
                .ok_or(super::Wrong("it is true or false"))?;
            Ok(vec![("parallel_tool_calls", (!disabled).into())])
        })
        .harmless(AS_IT_STANDS, "nothing is called"),
    word(&["mcp_servers", "integrations"])
        .refused(
            GENERATING,
            "the server connects to no MCP servers for a request; let the client offer their tools",
        )
        .unless(is_empty),
    word(&["web_search_options"])
        .refused(GENERATING, "the server does not search the web")
        .unless(never),
    word(&["web_search"])
        .refused(GENERATING, "the server does not search the web")
        .unless(is_false),
    word(&["background"])
        .refused(
            GENERATING,
            "responses are made while the client waits; use `stream`",
        )
        .unless(is_false),
    word(&["moderation"])
        .refused(GENERATING, "content is not moderated")
        .unless(is_empty),
];

/// The model may, and need not, call anything.
fn is_free(choice: &Value) -> bool {
    let kind = choice.get("type").unwrap_or(choice);
    asks_nothing(choice) || kind == "auto" || kind == "none"
}
