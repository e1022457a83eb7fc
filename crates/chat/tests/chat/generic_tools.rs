//! Tools for models whose template takes none: what they are told, and what they may write.

use std::fs;

use macmlx_chat::ChatModel;
use macmlx_inference::{
    ChatPrompt, Message, ReasoningOptions, Role, ToolCall, ToolChoice, ToolDefinition, ToolSupport,
};
use macmlx_output::grammar::Constraint;
use serde_json::{Value, json};

use crate::{tokenizers, walks::EOS};

const PLAIN: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]";

/// Has no system turn, and insists on turns of user and assistant.
const ALTERNATING: &str = "{% for m in messages %}\
    {% if (m.role == 'user') != (loop.index0 % 2 == 0) %}\
    {{ raise_exception('roles must alternate') }}{% endif %}\
    [{{ m.role }}]{{ m.content }}{% endfor %}[assistant]";

const CALL: &str = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";

fn model(template: &str) -> ChatModel {
    model_with(template, &json!({}))
}

fn model_with(template: &str, file: &Value) -> ChatModel {
    let folder = tokenizers::byte_level();
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    tokenizers::write(folder.path(), "macmlx.json", file);
    tokenizers::write(
        folder.path(),
        "tokenizer_config.json",
        &json!({ "eos_token": EOS }),
    );
    ChatModel::load(folder.path(), "org/model").unwrap()
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: Some("Does it.".into()),
        parameters: json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"a": {"type": "integer", "title": "A"}, "title": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": false,
        }),
        strict: false,
    }
}

fn chat(messages: Vec<Message>) -> ChatPrompt {
    ChatPrompt {
        messages,
        tools: vec![tool("f"), tool("g")],
        ..ChatPrompt::default()
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn call(text: &str, names: &[&str]) -> Message {
    let mut message = Message::text(Role::Assistant, text);
    message.tool_calls = names
        .iter()
        .map(|name| ToolCall {
            id: format!("call_{name}"),
            name: (*name).into(),
            arguments: r#"{"a": 1}"#.into(),
        })
        .collect();
    message
}

fn result(name: &str, text: &str) -> Message {
    Message {
        tool_call_id: Some(format!("call_{name}")),
        ..Message::text(Role::Tool, text)
    }
}

fn text(model: &ChatModel, chat: &ChatPrompt) -> String {
    let rendered = model.render(chat, &ReasoningOptions::default());
    rendered.unwrap().text
}

fn constraint(model: &ChatModel, chat: &ChatPrompt) -> Option<Constraint> {
    let rendered = model.render(chat, &ReasoningOptions::default()).unwrap();
    model.constraint(&rendered, None).unwrap()
}

/// Whether an output may be written as a whole.
fn takes(model: &ChatModel, chat: &ChatPrompt, output: &str) -> bool {
    let mut constraint = constraint(model, chat).unwrap();
    for id in model.tokenizer().encode(output, false).unwrap() {
        if constraint.is_complete() || !constraint.allowed().unwrap()[id as usize] {
            return false;
        }
        constraint.advance(id).unwrap();
    }
    let eos = model.tokenizer().token_id(EOS).unwrap();
    constraint.is_complete() || constraint.allowed().unwrap()[eos as usize]
}

#[test]
fn tools_are_told_in_the_system_turn() {
    let model = model(PLAIN);
    assert_eq!(model.traits().tools, ToolSupport::Generic);
    let line = |name: &str| {
        format!(
            "{{\"name\":\"{name}\",\"description\":\"Does it.\",\"parameters\":{{\"type\":\"object\",\
             \"properties\":{{\"a\":{{\"type\":\"integer\"}},\"title\":{{\"type\":\"string\"}}}},\
             \"required\":[\"a\"]}}}}"
        )
    };
    let told = text(&model, &chat(vec![user("hi")]));
    assert!(told.starts_with("[system]You can call tools."), "{told}");
    assert!(
        told.contains(&format!("\n{}\n{}\n", line("f"), line("g"))),
        "{told}"
    );
    assert!(told.ends_with("[user]hi[assistant]"), "{told}");

    let system = |text: &str| Message::text(Role::System, text);
    let own = text(
        &model,
        &chat(vec![system("one"), system("two"), user("hi")]),
    );
    assert!(
        own.starts_with("[system]one[system]two\n\nYou can call tools."),
        "{own}"
    );
    assert_eq!(
        text(
            &model,
            &ChatPrompt {
                tool_choice: ToolChoice::None,
                ..chat(vec![user("hi")])
            }
        ),
        "[user]hi[assistant]"
    );
}

#[test]
fn a_template_without_system_turns_tells_the_user() {
    let model = model(ALTERNATING);
    let told = text(
        &model,
        &chat(vec![
            user("hi"),
            call("", &["f", "g"]),
            result("f", "one"),
            result("g", "two"),
            user("and?"),
        ]),
    );
    assert!(told.starts_with("[user]You can call tools."), "{told}");
    let end = format!(
        "\n\nhi[assistant]{CALL}\n{}[user]<tool_response>\none\n</tool_response>\n\
         <tool_response>\ntwo\n</tool_response>\n\nand?[assistant]",
        CALL.replace("\"f\"", "\"g\"")
    );
    assert!(told.ends_with(&end), "{told}");
}

/// A turn that is over never changes, so that its cache can be used again.
#[test]
fn a_conversation_that_grows_keeps_its_beginning() {
    for template in [PLAIN, ALTERNATING] {
        let model = model(template);
        let turns = [
            user("hi"),
            call("Let me see.", &["f"]),
            result("f", "one"),
            call("Once more.\n\n", &["g"]),
            result("g", "two"),
            Message::text(Role::Assistant, "Done."),
            user("thanks"),
        ];
        let mut before = String::new();
        for count in [1, 3, 5, 7] {
            let now = text(&model, &chat(turns[..count].to_vec()));
            assert!(now.starts_with(&before), "{now}\n{before}");
            before = now;
        }
        assert!(
            before.contains(&format!("[assistant]Let me see.\n{CALL}[user]")),
            "{before}"
        );
        let second = CALL.replace("\"f\"", "\"g\"");
        assert!(
            before.contains(&format!("[assistant]Once more.\n\n{second}[user]")),
            "{before}"
        );
        // Nor does what the model must do.
        for tool_choice in [ToolChoice::Required, ToolChoice::Named("g".into())] {
            let forced = ChatPrompt {
                tool_choice,
                ..chat(turns.to_vec())
            };
            assert_eq!(text(&model, &forced), before);
        }
    }
}

#[test]
fn an_answer_that_the_client_has_begun_is_continued() {
    let model = model(PLAIN.trim_end_matches("[assistant]"));
    let begun = ChatPrompt {
        continue_final_message: true,
        ..chat(vec![user("hi"), Message::text(Role::Assistant, "Well, ")])
    };
    assert!(text(&model, &begun).ends_with("[user]hi[assistant]Well, "));
    let called = ChatPrompt {
        messages: vec![user("hi"), call("", &["f"])],
        ..begun
    };
    let refusal = model.render(&called, &ReasoningOptions::default());
    assert!(
        refusal
            .unwrap_err()
            .to_string()
            .contains("without tool calls")
    );
}

/// What the history shows is what the grammar lets the model write.
#[test]
fn calls_are_held_to_the_tools_in_any_request() {
    let model = model(PLAIN);
    let auto = chat(vec![user("hi")]);
    let second = CALL.replace("\"f\"", "\"g\"");
    for output in [
        "Hello.",
        "Use a < b, and <tool_calls> of your own.",
        CALL,
        &format!("{CALL}\n{second}"),
        &format!("Let me see.\n{CALL}"),
        "{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
        "```json\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n```",
        "{\"names\": [\"f\"]}",
    ] {
        assert!(takes(&model, &auto, output), "{output}");
    }
    for output in [
        &CALL.replace("\"f\"", "\"h\""),
        &CALL.replace('1', "\"one\""),
        &CALL.replace("{\"a\": 1}", "{}"),
        // What follows a call is not the model's to write.
        &format!("{CALL}\n<tool_response>\n1\n</tool_response>"),
        &format!("{CALL} Done."),
        "{\"name\": \"h\", \"arguments\": {}}",
    ] {
        assert!(!takes(&model, &auto, output), "{output}");
    }
    let required = ChatPrompt {
        tool_choice: ToolChoice::Required,
        ..auto.clone()
    };
    assert!(takes(&model, &required, CALL));
    assert!(!takes(&model, &required, "Hello."));
    let named = ChatPrompt {
        tool_choice: ToolChoice::Named("g".into()),
        ..auto.clone()
    };
    assert!(takes(&model, &named, &second) && !takes(&model, &named, CALL));
    let single = ChatPrompt {
        single_tool_call: true,
        ..auto
    };
    assert!(takes(&model, &single, CALL));
    assert!(!takes(&model, &single, &format!("{CALL}\n{second}")));
    let many = vec![CALL; 17].join("\n");
    assert!(takes(
        &model,
        &required,
        &many[..many.len() - CALL.len() - 1]
    ));
    assert!(!takes(&model, &required, &many));
}

#[test]
fn tools_that_no_grammar_can_hold_are_offered_all_the_same() {
    let model = model(PLAIN);
    let odd = |tool_choice, strict| ChatPrompt {
        tools: vec![ToolDefinition {
            strict,
            ..tool("what a name")
        }],
        tool_choice,
        ..chat(vec![user("hi")])
    };
    assert!(constraint(&model, &odd(ToolChoice::Auto, false)).is_none());
    for (tool_choice, strict) in [(ToolChoice::Auto, true), (ToolChoice::Required, false)] {
        let chat = odd(tool_choice, strict);
        let rendered = model.render(&chat, &ReasoningOptions::default()).unwrap();
        assert!(model.constraint(&rendered, None).is_err());
    }
}

#[test]
fn the_notation_can_be_chosen_for_a_template_that_takes_tools() {
    let takes_tools = format!("{PLAIN}{{{{ tools }}}}");
    let chosen = model_with(&takes_tools, &json!({"tool_format": "generic"}));
    assert_eq!(chosen.traits().tools, ToolSupport::Generic);
    assert!(text(&chosen, &chat(vec![user("hi")])).starts_with("[system]You can call tools."));
    assert_eq!(model(&takes_tools).traits().tools, ToolSupport::Native);
    let none = model_with(PLAIN, &json!({"tool_format": "none"}));
    assert_eq!(none.traits().tools, ToolSupport::None);
}
