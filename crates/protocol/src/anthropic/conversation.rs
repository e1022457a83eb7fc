//! `system` and `messages`, as clients send and replay them.

use std::collections::HashMap;

use macmlx_inference::{Message, Role, ToolCall};
use serde_json::Value;

use super::{
    content::{Block, Content, blocks, wrong},
    signature,
    thinking::known_effort,
    tools::ToolChange,
};
use crate::Error;

/// A conversation in neutral terms.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) messages: Vec<Message>,
    /// Tools that turns load, define or withdraw, oldest first.
    pub(super) tool_changes: Vec<ToolChange>,
    /// The newest effort that a system turn asks for.
    pub(super) effort: Option<String>,
    /// The client has begun the answer.
    pub(super) is_continued: bool,
}

/// Reads both. Every spelling of one conversation gives the same messages.
pub(super) fn conversation(system: Option<&Value>, turns: &[Value]) -> Result<Conversation, Error> {
    let mut reader = Reader::default();
    let mut content = Content::lines();
    for block in blocks(system, "system")? {
        content.push(&block)?;
    }
    reader.say(Role::System, content);
    let last_user = turns.iter().rposition(|turn| turn["role"] == "user");
    let mut last = "messages".to_owned();
    for (index, turn) in turns.iter().enumerate() {
        let path = format!("messages[{index}]");
        let said = reader.messages.len();
        reader.turn(turn, &path, last_user.is_some_and(|user| user > index))?;
        if reader.messages.len() > said {
            last = path;
        }
    }
    if last == "messages" {
        return Err(wrong("messages", "says nothing that could be answered"));
    }
    let is_continued = reader
        .messages
        .last()
        .is_some_and(|message| message.role == Role::Assistant);
    if is_continued {
        check_continued(reader.messages.last(), &last)?;
    }
    Ok(Conversation {
        messages: reader.messages,
        tool_changes: reader.tool_changes,
        effort: reader.effort,
        is_continued,
    })
}

/// Only text can be gone on with.
fn check_continued(message: Option<&Message>, path: &str) -> Result<(), Error> {
    match message {
        Some(message) if !message.tool_calls.is_empty() => Err(wrong(
            path,
            "ends with a tool_use block, and no tool_result answers it",
        )),
        Some(message) if message.joined_text().is_empty() => Err(wrong(
            path,
            "is the last turn and has no text that could be continued",
        )),
        _ => Ok(()),
    }
}

#[derive(Debug, Default)]
struct Reader {
    messages: Vec<Message>,
    /// Calls by their id.
    calls: HashMap<String, Call>,
    tool_changes: Vec<ToolChange>,
    effort: Option<String>,
}

#[derive(Debug)]
struct Call {
    name: String,
    is_answered: bool,
}

impl Reader {
    /// `is_past`: a user turn follows.
    fn turn(&mut self, turn: &Value, path: &str, is_past: bool) -> Result<(), Error> {
        if !turn.is_object() {
            return Err(wrong(path, "must be an object"));
        }
        let blocks = blocks(turn.get("content"), &format!("{path}.content"))?;
        match turn.get("role").and_then(Value::as_str) {
            Some("user") => self.user(&blocks),
            Some("assistant") => self.assistant(&blocks),
            Some("system") => self.system(turn, &blocks, path, is_past),
            _ => Err(wrong(
                &format!("{path}.role"),
                "must be user, assistant or system",
            )),
        }
    }

    fn user(&mut self, blocks: &[Block<'_>]) -> Result<(), Error> {
        let mut content = Content::lines();
        // Templates want results right after the calls, whatever else the turn says.
        for block in blocks {
            match block.kind {
                "tool_result" => self.tool_result(block)?,
                "tool_use" => return Err(wrong(&block.path, "is a call in a user's turn")),
                _ => self.push(&mut content, block)?,
            }
        }
        self.say(Role::User, content);
        Ok(())
    }

    fn assistant(&mut self, blocks: &[Block<'_>]) -> Result<(), Error> {
        let mut content = Content::pieces();
        let mut reasoning = String::new();
        let mut tool_calls = Vec::new();
        for block in blocks {
            match block.kind {
                "thinking" => reasoning.push_str(&thinking(block)?),
                "tool_use" => tool_calls.push(self.tool_use(block)?),
                "tool_result" => return Err(wrong(&block.path, "is a result in an answer")),
                _ => self.push(&mut content, block)?,
            }
        }
        if !(content.is_empty() && reasoning.is_empty() && tool_calls.is_empty()) {
            self.messages.push(Message {
                content: content.into_parts(),
                reasoning: (!reasoning.is_empty()).then_some(reasoning),
                tool_calls,
                ..Message::text(Role::Assistant, "")
            });
        }
        Ok(())
    }

    fn system(
        &mut self,
        turn: &Value,
        blocks: &[Block<'_>],
        path: &str,
        is_past: bool,
    ) -> Result<(), Error> {
        let mut content = Content::lines();
        for block in blocks {
            self.push(&mut content, block)?;
        }
        if let Some(effort) = turn["output_config"]["effort"].as_str() {
            let param = format!("{path}.output_config.effort");
            self.effort = known_effort(&param, Some(effort.to_owned()))?;
        }
        match turn.get("clear_at").and_then(Value::as_str) {
            Some("next_user_message") if is_past => {}
            None | Some("next_user_message" | "never") => self.say(Role::System, content),
            Some(_) => {
                return Err(wrong(
                    &format!("{path}.clear_at"),
                    "must be next_user_message or never",
                ));
            }
        }
        Ok(())
    }

    fn say(&mut self, role: Role, content: Content) {
        if !content.is_empty() {
            self.messages.push(Message {
                content: content.into_parts(),
                ..Message::text(role, "")
            });
        }
    }

    /// A block of any turn: content, or news about tools.
    fn push(&mut self, content: &mut Content, block: &Block<'_>) -> Result<(), Error> {
        match block.kind {
            "tool_reference" => self.load(content, block.name("tool_name")?),
            // Found by Anthropic's own search, in an earlier answer.
            "tool_search_tool_result" => {
                let found = &block.value["content"]["tool_references"];
                let path = block.at("content.tool_references");
                for reference in blocks(Some(found), &path)? {
                    let name = reference.name("tool_name")?.to_owned();
                    self.tool_changes.push(ToolChange::Load(name));
                }
            }
            "tool_addition" => self.tool_addition(content, block)?,
            "tool_removal" => {
                if let Some(name) = block.value["tool"]["name"].as_str() {
                    content.push_text(&format!("Tool `{name}` is no longer available."));
                    self.tool_changes
                        .push(ToolChange::Withdraw(name.to_owned()));
                }
            }
            _ => content.push(block)?,
        }
        Ok(())
    }

    fn load(&mut self, content: &mut Content, name: &str) {
        content.push_text(&format!("Tool `{name}` is now available."));
        self.tool_changes.push(ToolChange::Load(name.to_owned()));
    }

    fn tool_addition(&mut self, content: &mut Content, block: &Block<'_>) -> Result<(), Error> {
        let tool = &block.value["tool"];
        if let Some(name) = tool["name"].as_str() {
            self.load(content, name);
        } else if let Some(definition) = tool.get("definition") {
            if let Some(name) = definition["name"].as_str() {
                content.push_text(&format!("Tool `{name}` is now available."));
            }
            self.tool_changes.push(ToolChange::Define {
                definition: definition.clone(),
                path: block.at("tool.definition"),
            });
        }
        Ok(())
    }

    fn tool_use(&mut self, block: &Block<'_>) -> Result<ToolCall, Error> {
        let id = block.name("id")?.to_owned();
        let name = block.name("name")?.to_owned();
        let arguments = match block.value.get("input") {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(input @ Value::Object(_)) => input.to_string(),
            Some(_) => return Err(wrong(&block.at("input"), "must be an object")),
        };
        let call = Call {
            name: name.clone(),
            is_answered: false,
        };
        if self.calls.insert(id.clone(), call).is_some() {
            return Err(wrong(
                &block.at("id"),
                &format!("names another tool_use block, too: `{id}`"),
            ));
        }
        // A tool that was called was known to the model.
        self.tool_changes.push(ToolChange::Load(name.clone()));
        Ok(ToolCall {
            id,
            name,
            arguments,
        })
    }

    fn tool_result(&mut self, block: &Block<'_>) -> Result<(), Error> {
        let id = block.name("tool_use_id")?;
        let param = || block.at("tool_use_id");
        let name = match self.calls.get_mut(id) {
            Some(call) if !call.is_answered => {
                call.is_answered = true;
                call.name.clone()
            }
            Some(_) => return Err(wrong(&param(), &format!("is answered already: `{id}`"))),
            None => {
                return Err(wrong(
                    &param(),
                    &format!("is the id of no earlier tool_use block: `{id}`"),
                ));
            }
        };
        let mut content = Content::lines();
        if block.value["is_error"] == true {
            content.push_text("The call failed:");
        }
        for inner in blocks(block.value.get("content"), &block.at("content"))? {
            self.push(&mut content, &inner)?;
        }
        self.messages.push(Message {
            content: content.into_parts(),
            tool_call_id: Some(id.to_owned()),
            name: Some(name),
            ..Message::text(Role::Tool, "")
        });
        Ok(())
    }
}

/// The text of a thinking block, or what its signature kept of it.
fn thinking(block: &Block<'_>) -> Result<String, Error> {
    let text = block.text_or_null("thinking")?.unwrap_or_default();
    if !text.is_empty() {
        return Ok(text.to_owned());
    }
    let signature = block.text_or_null("signature")?.unwrap_or_default();
    Ok(signature::restore(signature).unwrap_or_default())
}
