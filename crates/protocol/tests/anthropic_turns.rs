//! Requests of one agent after the other: what the model has read once must stay a prefix.

#![expect(clippy::unwrap_used, reason = "a broken fixture ends the test")]

use std::{fs, path::Path};

use macmlx_inference::{ChatPrompt, Prompt};
use macmlx_protocol::{Body, Context, Endpoint, anthropic::messages::Messages};
use serde_json::Value;

/// The prompt of a recorded request.
fn prompt(client: &str) -> ChatPrompt {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/protocol/anthropic")
        .join(format!("client_{client}/request.json"));
    let request: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let context = Context {
        id: String::new(),
        created_unix: 0,
        fingerprint: String::new(),
    };
    let request = Messages::parse(Body::json(request["body"].to_string().as_bytes())).unwrap();
    let translation = Messages::translate(request, context).unwrap();
    match &translation.requests[0].prompt {
        Prompt::Chat(chat) => chat.clone(),
        other => unreachable!("{other:?}"),
    }
}

/// Clients move `cache_control`, write the same turn as a list and then as a string, and sort
/// their tools anew.
#[test]
fn a_turn_begins_with_the_prompt_of_the_one_before() {
    for (first, second) in [
        ("claude_code_tool", "claude_code_tool_result"),
        ("claude_code_interactive", "claude_code_interactive_result"),
        (
            "claude_code_interactive_result",
            "claude_code_interactive_reminded",
        ),
        ("claude_code_mcp", "claude_code_mcp_tool_found"),
        ("claude_code_mcp_tool_found", "claude_code_mcp_tool_result"),
        ("cline", "cline_tool_result"),
        ("opencode", "opencode_tool_result"),
        ("pi", "pi_tool_result"),
        ("qwen_code", "qwen_code_tool_result"),
    ] {
        let (before, after) = (prompt(first), prompt(second));
        assert!(after.messages.starts_with(&before.messages), "{second}");
        assert!(after.messages.len() > before.messages.len(), "{second}");
        assert!(after.tools.starts_with(&before.tools), "{second}");
    }
}

#[test]
fn a_tool_is_offered_once_it_was_found() {
    let offers_echo = |client: &str| {
        let tools = prompt(client).tools;
        tools.iter().any(|tool| tool.name == "mcp__stub__echo")
    };
    assert!(!offers_echo("claude_code_mcp"));
    assert!(offers_echo("claude_code_mcp_tool_found"));
    assert!(offers_echo("claude_code_mcp_tool_result"));
}
