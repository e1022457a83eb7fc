//! `system` and `messages`, as clients send and replay them.

use macmlx_inference::{Message, Role, ToolCall};
use serde_json::Value;

use super::{
    content::{Block, Content, blocks, wrong},
    signature,
    thinking::check_effort,
    tools::ToolChange,
};
use crate::{Error, open_calls::OpenCalls, thought};

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
    let mut content = Content::instructions();
    for block in blocks(system, "system")? {
        content.push(&block)?;
    }
    reader.say(Role::System, content);
    let last_user = turns.iter().rposition(|turn| turn["role"] == "user");
    let mut last = None;
    for (index, turn) in turns.iter().enumerate() {
        let path = format!("messages[{index}]");
        let said = reader.messages.len();
        reader.turn(turn, &path, last_user.is_some_and(|user| user > index))?;
        if reader.messages.len() > said {
            last = Some((index, path));
        }
    }
    let Some((last, path)) = last else {
        return Err(wrong("messages", "holds nothing that could be answered"));
    };
    let newest = reader.messages.last();
    let is_continued = newest.is_some_and(|message| message.role == Role::Assistant);
    if is_continued {
        // An empty question is no wish to have the answer before it continued.
        if let Some(user) = last_user.filter(|user| *user > last) {
            return Err(wrong(
                &format!("messages[{user}].content"),
                "says nothing that could be answered",
            ));
        }
        check_continued(newest, &path)?;
    }
    Ok(Conversation {
        messages: reader.messages,
        tool_changes: reader.tool_changes,
        effort: reader.effort,
        is_continued,
    })
}

/// Refuses to continue a message that is more than text.
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
    open_calls: OpenCalls,
    tool_changes: Vec<ToolChange>,
    effort: Option<String>,
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
            Some("assistant") => self.assistant(turn, &blocks, path),
            Some("system" | "developer") => self.system(turn, &blocks, path, is_past),
            Some("tool" | "function") => Err(wrong(
                &format!("{path}.role"),
                "must be user, assistant or system; the result of a tool is a `tool_result` block \
                 in a user's turn",
            )),
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

    fn assistant(&mut self, turn: &Value, blocks: &[Block<'_>], path: &str) -> Result<(), Error> {
        let calls = turn.get("tool_calls").and_then(Value::as_array);
        if calls.is_some_and(|calls| !calls.is_empty()) {
            return Err(Error::unsupported(
                format!("{path}.tool_calls"),
                "a call is a `tool_use` block of the content",
            ));
        }
        let mut content = Content::pieces();
        let mut reasoning = String::new();
        let mut tool_calls = Vec::new();
        self.open_calls.begin_turn();
        for block in blocks {
            match block.kind {
                "thinking" | "reasoning" | "reasoning_text" | "reasoning.text" | "summary_text" => {
                    reasoning.push_str(&thinking(block)?);
                }
                "tool_use" => tool_calls.push(self.tool_use(block)?),
                "tool_result" => return Err(wrong(&block.path, "is a result in an answer")),
                _ => self.push(&mut content, block)?,
            }
        }
        let of_turn = thought::of_turn(turn, path)?;
        // Some clients replay a thought in both places.
        if !reasoning.contains(&of_turn) {
            reasoning.push_str(&of_turn);
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
        let mut content = Content::instructions();
        for block in blocks {
            self.push(&mut content, block)?;
        }
        if let Some(effort) = turn["output_config"]["effort"].as_str() {
            let param = format!("{path}.output_config.effort");
            self.effort = check_effort(&param, Some(effort.to_owned()))?;
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
                let found = block.value["content"]["tool_references"].as_array();
                let names = found
                    .into_iter()
                    .flatten()
                    .filter_map(|reference| reference["tool_name"].as_str());
                self.tool_changes
                    .extend(names.map(|name| ToolChange::Load(name.to_owned())));
            }
            "tool_addition" => self.tool_addition(content, block),
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

    fn tool_addition(&mut self, content: &mut Content, block: &Block<'_>) {
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
    }

    fn tool_use(&mut self, block: &Block<'_>) -> Result<ToolCall, Error> {
        let name = block.name("name")?.to_owned();
        let arguments = match block.value.get("input") {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(input @ Value::Object(_)) => input.to_string(),
            // As the arguments of a call are text elsewhere.
            Some(Value::String(text)) if macmlx_json::read_object(text).is_ok() => text.clone(),
            Some(_) => return Err(wrong(&block.at("input"), "must be an object")),
        };
        let mut call = ToolCall {
            // A call without an id gets one by its place.
            id: block.text_or_null("id")?.unwrap_or_default().to_owned(),
            name,
            arguments,
        };
        self.open_calls.add(&mut call);
        // A tool that was called was known to the model.
        self.tool_changes.push(ToolChange::Load(call.name.clone()));
        Ok(call)
    }

    fn tool_result(&mut self, block: &Block<'_>) -> Result<(), Error> {
        let id = block.text_or_null("tool_use_id")?;
        let mut result = Message {
            tool_call_id: id.map(str::to_owned),
            ..Message::text(Role::Tool, "")
        };
        if !self.open_calls.answer(&mut result) {
            let param = block.at("tool_use_id");
            return Err(self.open_calls.orphan(id, &param, &block.path));
        }
        let mut content = Content::lines();
        if block.value["is_error"] == true {
            content.push_text("The call failed:");
        }
        for inner in blocks(block.value.get("content"), &block.at("content"))? {
            self.push(&mut content, &inner)?;
        }
        result.content = content.into_parts();
        self.messages.push(result);
        Ok(())
    }
}

/// The text of a thinking block, or what its signature kept of it.
fn thinking(block: &Block<'_>) -> Result<String, Error> {
    let text = thought::text(Some(block.value), &block.path)?;
    if !text.is_empty() {
        return Ok(text);
    }
    let signature = block.text_or_null("signature")?.unwrap_or_default();
    Ok(signature::restore(signature).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use macmlx_inference::{ContentPart, ImageSource};
    use serde_json::json;

    use super::*;

    fn read(turns: &Value) -> Result<Conversation, Error> {
        conversation(None, turns.as_array().unwrap())
    }

    fn said(turns: &Value) -> Vec<Message> {
        read(turns).unwrap().messages
    }

    fn refused(turns: &Value) -> String {
        match read(turns).unwrap_err() {
            Error::Invalid { param, message } => {
                let param = param.unwrap();
                assert!(message.starts_with(&param), "{message}");
                param
            }
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_spelling_of_text_is_the_same_turn() {
        let expected = said(&json!([{"role": "user", "content": "a\nb"}]));
        for content in [
            json!([{"type": "text", "text": "a\nb"}]),
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            json!([
                {"type": "text", "text": "a\n", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": ""},
                {"type": "text", "text": "b", "citations": null},
            ]),
            json!(["a", "b"]),
            json!({"type": "text", "text": "a\nb"}),
        ] {
            assert_eq!(
                said(&json!([{"role": "user", "content": content}])),
                expected
            );
        }
    }

    #[test]
    fn the_line_that_names_the_version_of_claude_code_is_left_out() {
        let turns = [json!({"role": "user", "content": "hi"})];
        let billing = |cch: &str| format!("x-anthropic-billing-header: cc_version=2.1; cch={cch};");
        let prompts: Vec<_> = [
            json!("Be brief."),
            json!([{"type": "text", "text": "Be brief."}]),
            json!([{"type": "text", "text": billing("a")}, {"type": "text", "text": "Be brief."}]),
            json!(format!("{}\n\nBe brief.", billing("b"))),
        ]
        .iter()
        .map(|system| conversation(Some(system), &turns).unwrap().messages)
        .collect();
        assert_eq!(prompts[0][0], Message::text(Role::System, "Be brief."));
        for prompt in &prompts[1..] {
            assert_eq!(prompt, &prompts[0]);
        }
        let of_a_user = json!([{"role": "user", "content": billing("d")}]);
        assert_eq!(said(&of_a_user)[0].joined_text(), billing("d"));
        let only = json!([{"type": "text", "text": billing("c")}]);
        assert_eq!(conversation(Some(&only), &turns).unwrap().messages.len(), 1);
    }

    #[test]
    fn system_turns_stay_where_they_are() {
        use Role::{Assistant, System, User};
        let messages = said(&json!([
            {"role": "user", "content": "go"},
            {"role": "system", "content": [{"type": "text", "text": "skills"}]},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "more"},
            {"role": "system", "content": "skills"},
        ]));
        let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [User, System, Assistant, User, System]);
        assert_eq!(messages[1], messages[4]);
    }

    #[test]
    fn a_system_turn_may_be_for_one_turn_only() {
        let turns = |clear_at: &str| {
            json!([
                {"role": "user", "content": "a"},
                {"role": "system", "content": "1", "clear_at": clear_at},
                {"role": "assistant", "content": "b"},
                {"role": "user", "content": "c"},
                {"role": "system", "content": "2", "clear_at": clear_at,
                 "output_config": {"effort": "low"}},
            ])
        };
        assert_eq!(said(&turns("never")).len(), 5);
        assert_eq!(said(&turns("next_user_message")).len(), 4);
        assert_eq!(
            read(&turns("never")).unwrap().effort.as_deref(),
            Some("low")
        );
        assert_eq!(refused(&turns("now")), "messages[1].clear_at");
    }

    #[test]
    fn tool_turns_are_replayed() {
        let messages = said(&json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "text", "text": "Let me "},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 1, "a": "x"}},
                {"type": "text", "text": "look."},
                {"type": "tool_use", "id": "t2", "name": "g"},
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "By the way"},
                {"type": "tool_result", "tool_use_id": "t2", "is_error": true, "content": "gone"},
                {"type": "tool_result", "tool_use_id": "t1", "content": [
                    {"type": "text", "text": "1"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                    {"type": "search_result", "title": "T", "source": "http://s",
                     "content": [{"type": "text", "text": "found"}]},
                    {"type": "browser_state", "tabs": []},
                ]},
            ]},
        ]));
        let answer = &messages[1];
        assert_eq!(answer.reasoning.as_deref(), Some("hm"));
        assert_eq!(answer.joined_text(), "Let me look.");
        let arguments: Vec<_> = answer
            .tool_calls
            .iter()
            .map(|call| &*call.arguments)
            .collect();
        assert_eq!(arguments, [r#"{"b":1,"a":"x"}"#, "{}"]);
        let roles: Vec<_> = messages[2..].iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::Tool, Role::Tool, Role::User]);
        assert_eq!(messages[2].joined_text(), "The call failed:\ngone");
        assert_eq!(messages[2].name.as_deref(), Some("g"));
        let [
            ContentPart::Text(one),
            ContentPart::Image(image),
            ContentPart::Text(found),
        ] = &messages[3].content[..]
        else {
            panic!("{:?}", messages[3].content);
        };
        assert_eq!(one, "1");
        assert_eq!(image.param, "messages[2].content[2].content[1]");
        assert_eq!(
            found,
            "<search_result title=\"T\" source=\"http://s\">\nfound\n</search_result>"
        );
    }

    #[test]
    fn thinking_that_was_not_shown_is_restored_from_its_signature() {
        let kept = signature::carrying("secret");
        let turns = json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "", "signature": kept},
                {"type": "thinking", "thinking": "", "signature": "EqQB"},
                {"type": "redacted_thinking", "data": "opaque"},
                {"type": "text", "text": "b"},
            ]},
            {"role": "user", "content": "c"},
        ]);
        assert_eq!(said(&turns)[1].reasoning.as_deref(), Some("secret"));
    }

    #[test]
    fn what_only_anthropics_servers_understand_is_passed_over() {
        let turns = json!([
            {"role": "user", "content": [
                {"type": "container_upload", "file_id": "f"},
                {"type": "text", "text": "a"},
            ]},
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                {"type": "tool_search_tool_result", "tool_use_id": "s", "content": {
                    "type": "tool_search_tool_result_error", "error_code": "unavailable",
                }},
                {"type": "mcp_tool_use", "id": "m"},
                {"type": "fallback", "from": {}, "to": {}},
                {"type": "never_heard_of"},
                {"type": "nor_of_this", "text": "", "data": 1},
                {"type": "text", "text": "b", "citations": [{"type": "char_location"}]},
            ]},
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]},
            {"role": "user", "content": [{"type": "compaction", "content": "so far"}]},
        ]);
        let texts: Vec<_> = said(&turns).iter().map(Message::joined_text).collect();
        assert_eq!(texts, ["a", "b", "so far"]);
    }

    #[test]
    fn documents_of_text_are_read_with_their_title() {
        let document = |source: Value| {
            json!([{"role": "user", "content": [
                {"type": "document", "title": "T", "context": "C", "source": source},
                {"type": "text", "text": "what?"},
            ]}])
        };
        let plain = document(json!({"type": "text", "media_type": "text/plain", "data": "words"}));
        let blocks =
            document(json!({"type": "content", "content": [{"type": "text", "text": "words"}]}));
        assert_eq!(
            said(&plain)[0].joined_text(),
            "<document title=\"T\">\nC\nwords\n</document>\nwhat?"
        );
        assert_eq!(said(&blocks), said(&plain));
        for kind in ["base64", "url", "file"] {
            let refused_at = refused(&document(json!({"type": kind})));
            assert_eq!(refused_at, "messages[0].content[0].source", "{kind}");
        }
    }

    #[test]
    fn images_say_where_they_stand() {
        let turns = json!([{"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "source": {"type": "url", "url": "http://a/b.png"}},
        ]}]);
        let ContentPart::Image(image) = &said(&turns)[0].content[1] else {
            panic!("an image was sent");
        };
        assert_eq!(image.source, ImageSource::Url("http://a/b.png".into()));
        assert_eq!(image.param, "messages[0].content[1]");
    }

    #[test]
    fn an_answer_that_was_begun_is_continued() {
        let begun = json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "text", "text": "The answer is ("}]},
        ]);
        assert!(read(&begun).unwrap().is_continued);
        let nothing_said = json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": ""},
        ]);
        assert!(!read(&nothing_said).unwrap().is_continued);
    }

    #[test]
    fn news_about_tools_is_told_and_kept() {
        let conversation = read(&json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "t", "name": "ToolSearch", "input": {}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [
                {"type": "tool_reference", "tool_name": "echo"},
            ]}]},
            {"role": "system", "content": [
                {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "late"}},
                {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "echo"}},
            ]},
        ]))
        .unwrap();
        assert_eq!(
            conversation.tool_changes,
            [
                ToolChange::Load("ToolSearch".into()),
                ToolChange::Load("echo".into()),
                ToolChange::Load("late".into()),
                ToolChange::Withdraw("echo".into()),
            ]
        );
        let texts: Vec<_> = conversation.messages[2..]
            .iter()
            .map(Message::joined_text)
            .collect();
        assert_eq!(
            texts,
            [
                "Tool `echo` is now available.",
                "Tool `late` is now available.\nTool `echo` is no longer available.",
            ]
        );
    }

    #[test]
    fn wrong_turns_are_named() {
        let call = json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        ]});
        let result = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": "1"},
        ]});
        let user = |block: Value| json!([{"role": "user", "content": [block]}]);
        for (turns, param) in [
            (json!([]), "messages"),
            (json!([{"role": "user", "content": ""}]), "messages"),
            (json!(["hello"]), "messages[0]"),
            (json!([{"content": "a"}]), "messages[0].role"),
            (
                json!([{"role": "tool", "content": "a"}]),
                "messages[0].role",
            ),
            (
                json!([{"role": "user", "content": 5}]),
                "messages[0].content",
            ),
            (user(json!(5)), "messages[0].content[0]"),
            (user(json!({})), "messages[0].content[0].type"),
            (user(json!({"type": "text"})), "messages[0].content[0].text"),
            (
                user(json!({"type": "text", "text": 1})),
                "messages[0].content[0].text",
            ),
            (
                user(json!({"type": "image", "source": {"type": "file", "file_id": "f"}})),
                "messages[0].content[0].source",
            ),
            (
                user(json!({"type": "image", "source": {"type": "base64", "data": "AA"}})),
                "messages[0].content[0].source.media_type",
            ),
            (
                user(json!({"type": "image", "source": {"type": "drawn"}})),
                "messages[0].content[0].source.type",
            ),
            (
                user(
                    json!({"type": "document", "source": {"type": "text", "data": "a"},
                            "citations": {"enabled": true}}),
                ),
                "messages[0].content[0].citations.enabled",
            ),
            (
                user(json!({"type": "tool_use", "id": "t", "name": "f", "input": {}})),
                "messages[0].content[0]",
            ),
            // A result needs its call, once.
            (json!([result]), "messages[0].content[0].tool_use_id"),
            (
                json!([call, result, result]),
                "messages[2].content[0].tool_use_id",
            ),
            // The same id is another call, which has no result.
            (json!([call, result, call]), "messages[2]"),
            (
                json!([{"role": "assistant", "tool_calls": [{"id": "c"}]}]),
                "messages[0].tool_calls",
            ),
            (
                json!([
                    {"role": "user", "content": "a"},
                    {"role": "assistant", "content": "b"},
                    {"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]},
                ]),
                "messages[2].content",
            ),
            // A call without a result cannot be continued.
            (
                json!([{"role": "user", "content": "a"}, call]),
                "messages[1]",
            ),
            (
                json!([{"role": "assistant", "content": [
                    {"type": "tool_use", "id": "t", "name": "f", "input": "text"},
                ]}]),
                "messages[0].content[0].input",
            ),
            (
                json!([{"role": "assistant", "content": [{"type": "tool_use", "id": 5, "name": "f"}]}]),
                "messages[0].content[0].id",
            ),
        ] {
            assert_eq!(refused(&turns), param, "{turns}");
        }
    }
}
