//! Tools, calls and results told in words, for templates that have no place for them.
//!
//! What is told depends on nothing but the tools and the turns, so that a conversation that grows
//! keeps its beginning.

use macmlx_inference::{ChatPrompt, ContentPart, Message, Role, ToolDefinition};
use macmlx_output::formats::generic;
use serde_json::{Map, Value, json};

use super::shape::text_of;

/// Keywords whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "required"];

/// Keywords whose members are schemas by name.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// The conversation with its tools told in the system turn, and its calls and results as the model
/// writes and reads them. A final message that is continued stays as it is.
pub(crate) fn tell(chat: &ChatPrompt) -> ChatPrompt {
    let mut messages = chat.messages.clone();
    let continued = messages.pop_if(|_| chat.continue_final_message);
    tell_turns(&mut messages);
    messages.extend(continued);
    let leading = messages
        .iter()
        .take_while(|turn| turn.role == Role::System)
        .count();
    let text = tools_text(&chat.tools);
    match leading.checked_sub(1) {
        Some(last) => messages[last]
            .content
            .push(ContentPart::Text(format!("\n\n{text}"))),
        None => messages.insert(0, Message::text(Role::System, text)),
    }
    ChatPrompt {
        messages,
        tools: Vec::new(),
        ..chat.clone()
    }
}

/// Writes calls and results in the notation of [`generic`]. The results of one turn are one turn.
pub(super) fn tell_turns(turns: &mut Vec<Message>) {
    let mut told: Vec<Message> = Vec::with_capacity(turns.len());
    let mut follows_result = false;
    for mut turn in turns.drain(..) {
        let is_result = turn.role == Role::Tool;
        for call in std::mem::take(&mut turn.tool_calls) {
            let arguments = if call.arguments.trim().is_empty() {
                "{}"
            } else {
                &call.arguments
            };
            let text = text_of(&turn);
            let gap = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            let call = generic::write_call(&call.name, arguments);
            turn.content.push(ContentPart::Text(format!("{gap}{call}")));
        }
        if is_result {
            let result = format!("<tool_response>\n{}\n</tool_response>", text_of(&turn));
            turn = Message::text(Role::User, result);
        }
        match told.last_mut() {
            Some(last) if is_result && follows_result => {
                last.content.push(ContentPart::Text("\n".into()));
                last.content.append(&mut turn.content);
            }
            _ => told.push(turn),
        }
        follows_result = is_result;
    }
    *turns = told;
}

/// What the model is told about its tools: a line of JSON each, and how to call one.
fn tools_text(tools: &[ToolDefinition]) -> String {
    let mut text =
        "You can call tools. They are, with the JSON schemas of their arguments:\n".to_owned();
    for tool in tools {
        text.push_str(&tool_line(tool).to_string());
        text.push('\n');
    }
    text.push_str("\nTo call a tool, write its name and arguments like this, and then stop:\n");
    text.push_str(&generic::write_call("name", r#"{"argument": "value"}"#));
    text.push_str(
        "\nWrite one such block for each call. The next message has the results, each between \
         <tool_response> and </tool_response>. If you need no tool, answer in plain text.",
    );
    text
}

fn tool_line(tool: &ToolDefinition) -> Value {
    let mut line = json!({"name": tool.name});
    if let Some(description) = &tool.description {
        line["description"] = description.as_str().into();
    }
    line["parameters"] = brief(&tool.parameters);
    line
}

/// The schema without what tells a model nothing: which standard it follows, that there is nothing
/// beside its properties, and titles that repeat their names.
fn brief(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let kept = keywords
                .iter()
                .filter(|(keyword, value)| match keyword.as_str() {
                    "$schema" | "$id" | "$comment" => false,
                    "additionalProperties" => !value.is_boolean(),
                    _ => true,
                });
            kept.map(|(keyword, value)| (keyword.clone(), member(keyword, value)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(brief).collect(),
        other => other.clone(),
    }
}

fn member(keyword: &str, value: &Value) -> Value {
    match value {
        _ if DATA.contains(&keyword) => value.clone(),
        Value::Object(schemas) if MAPS.contains(&keyword) => schemas
            .iter()
            .map(|(name, schema)| (name.clone(), brief(&drop_title(name, schema))))
            .collect::<Map<_, _>>()
            .into(),
        other => brief(other),
    }
}

/// The schema without a title that repeats the name it goes by.
fn drop_title(name: &str, schema: &Value) -> Value {
    let mut schema = schema.clone();
    let letters = |text: &str| {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect::<String>()
    };
    if let Value::Object(keywords) = &mut schema
        && let Some(Value::String(title)) = keywords.get("title")
        && letters(title) == letters(name)
    {
        keywords.shift_remove("title");
    }
    schema
}
