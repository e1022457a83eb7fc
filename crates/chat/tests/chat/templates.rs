//! Chat templates against what jinja2 makes of them (`fixtures/templates/make.py`).

use std::{fs, path::Path};

use macmlx_chat::ChatModel;
use macmlx_inference::{
    ChatPrompt, ContentPart, InferenceError, Message, ReasoningOptions, Role, ToolCall,
    ToolDefinition,
};
use macmlx_output::formats::Format;
use serde_json::{Value, json};

use crate::tokenizers;

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/templates");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn model(template: &str, special_tokens: &Value) -> ChatModel {
    let folder = tokenizers::byte_level();
    tokenizers::write(folder.path(), "tokenizer_config.json", special_tokens);
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    ChatModel::load(folder.path(), "org/model").unwrap()
}

fn message(value: &Value) -> Message {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    Message {
        role: serde_json::from_value::<Role>(value["role"].clone()).unwrap(),
        content: vec![ContentPart::Text(text("text").unwrap())],
        reasoning: text("reasoning"),
        tool_calls: value["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| serde_json::from_value::<ToolCall>(call.clone()).unwrap())
            .collect(),
        tool_call_id: text("tool_call_id"),
        name: text("name"),
    }
}

/// Every text and every argument is there, escaped or not, in whatever order.
fn shows(text: &str, messages: &[Message]) -> bool {
    let plain = text.replace('\\', "");
    messages.iter().all(|message| {
        let has_calls = message.tool_calls.iter().all(|call| {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            let city = arguments["city"].as_str().unwrap();
            plain.contains(&call.name) && plain.contains(city)
        });
        has_calls && plain.contains(message.joined_text().trim())
    })
}

fn tool(value: &Value) -> ToolDefinition {
    let function = &value["function"];
    ToolDefinition {
        name: function["name"].as_str().unwrap().into(),
        description: function["description"].as_str().map(str::to_owned),
        parameters: function["parameters"].clone(),
        strict: false,
    }
}

/// What these templates refuse or lose as it stands, and what is changed for them.
const REPAIRED: [(&str, &[&str]); 5] = [
    ("features", &["system"]),
    (
        "gemma_style",
        &["two_users", "tool_turns", "parallel_tool_turns"],
    ),
    ("llama3_style", &["parallel_tool_turns"]),
    ("mistral_style", &["two_users"]),
    ("smollm2", &["tool_turns", "parallel_tool_turns"]),
];

#[test]
fn templates_render_as_jinja2_does() {
    let expected: Value = serde_json::from_str(&fixture("expected.json")).unwrap();
    let conversations: Vec<Value> = serde_json::from_str(&fixture("conversations.json")).unwrap();
    let tools: Vec<ToolDefinition> = expected["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(tool)
        .collect();
    let mut compared = 0;
    let mut different = Vec::new();
    for (name, cases) in expected["templates"].as_object().unwrap() {
        let model = model(
            &fixture(&format!("{name}.jinja")),
            &expected["special_tokens"],
        );
        for conversation in &conversations {
            let chat = ChatPrompt {
                messages: conversation["messages"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(message)
                    .collect(),
                tools: if conversation["tools"] == true {
                    tools.clone()
                } else {
                    Vec::new()
                },
                template_kwargs: conversation["variables"]
                    .as_object()
                    .cloned()
                    .unwrap_or_default(),
                continue_final_message: conversation["continue"] == true,
                ..ChatPrompt::default()
            };
            let case = conversation["name"].as_str().unwrap();
            let rendered = model
                .template()
                .unwrap()
                .render(&chat, &ReasoningOptions::default());
            let want = &cases[case];
            let is_repaired = REPAIRED
                .iter()
                .any(|(template, cases)| template == name && cases.contains(&case));
            let same = match &rendered {
                Ok(text) if is_repaired => {
                    shows(text, &chat.messages) && want["text"] != text.as_str()
                }
                Ok(text) => want["text"] == text.as_str(),
                Err(InferenceError::Template { message }) => want["error"] == message.as_str(),
                Err(_) => false,
            };
            if !same {
                different.push(format!("{name}: {case}: {rendered:?}, not {want}"));
            }
            compared += 1;
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert_eq!(compared, 7 * conversations.len());
}

#[test]
fn mistral_gets_ids_it_accepts_and_the_same_ones_on_call_and_result() {
    let model = model(
        &fixture("mistral_style.jinja"),
        &json!({"eos_token": "</s>"}),
    );
    let call = Message {
        tool_calls: vec![ToolCall {
            id: "call_9f8e7d6c5b4a".into(),
            name: "f".into(),
            arguments: "{}".into(),
        }],
        ..Message::text(Role::Assistant, "")
    };
    let result = Message {
        tool_call_id: Some("call_9f8e7d6c5b4a".into()),
        ..Message::text(Role::Tool, "ok")
    };
    let chat = ChatPrompt {
        messages: vec![Message::text(Role::User, "go"), call, result],
        ..ChatPrompt::default()
    };
    let text = model
        .template()
        .unwrap()
        .render(&chat, &ReasoningOptions::default())
        .unwrap();
    let id = text
        .split(r#""id": ""#)
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert_eq!(id.len(), 9);
    assert!(text.contains(&format!(r#""call_id": "{id}""#)), "{text}");
}

#[test]
fn a_template_that_wants_parts_gets_parts() {
    let template =
        "{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}";
    let model = model(template, &json!({}));
    let chat = ChatPrompt {
        messages: vec![Message::text(Role::User, "hello")],
        ..ChatPrompt::default()
    };
    let text = model
        .template()
        .unwrap()
        .render(&chat, &ReasoningOptions::default())
        .unwrap();
    assert_eq!(text, "hello");
}

#[test]
fn errors_that_are_no_refusal_say_where() {
    let model = model("{{ messages[0].role }}\n{{ messages[0].a.b }}", &json!({}));
    let chat = ChatPrompt {
        messages: vec![Message::text(Role::User, "hello")],
        ..ChatPrompt::default()
    };
    let error = model
        .template()
        .unwrap()
        .render(&chat, &ReasoningOptions::default())
        .unwrap_err();
    assert!(
        matches!(&error, InferenceError::Template { message } if message.contains(":2")),
        "{error}"
    );
}

#[test]
fn a_template_that_is_no_jinja_is_a_load_error() {
    let folder = tokenizers::byte_level();
    fs::write(folder.path().join("chat_template.jinja"), "{% if %}").unwrap();
    let error = ChatModel::load(folder.path(), "org/model").unwrap_err();
    assert!(matches!(&error, InferenceError::ModelLoad { model, .. } if model == "org/model"));
}

#[test]
fn variables_cannot_replace_the_conversation() {
    let model = model("{{ messages }}", &json!({}));
    let chat = ChatPrompt {
        messages: vec![Message::text(Role::User, "hello")],
        template_kwargs: json!({"messages": []}).as_object().cloned().unwrap(),
        ..ChatPrompt::default()
    };
    let error = model
        .template()
        .unwrap()
        .render(&chat, &ReasoningOptions::default())
        .unwrap_err();
    assert!(
        matches!(error, InferenceError::InvalidRequest { param: Some(param), .. } if param == "chat_template_kwargs")
    );
}

#[test]
fn formats_are_recognised_by_the_template() {
    let formats = |name: &str| {
        let model = model(&fixture(name), &json!({}));
        let name = |format: Option<&'static dyn Format>| format.map(Format::name);
        (name(model.reasoning_format()), name(model.tool_format()))
    };
    assert_eq!(formats("qwen3.jinja"), (Some("think"), Some("hermes")));
    assert_eq!(formats("mistral_style.jinja"), (None, Some("mistral")));
    assert_eq!(formats("llama3_style.jinja"), (None, Some("llama3_json")));
    assert_eq!(
        formats("deepseek_style.jinja"),
        (Some("think"), Some("generic"))
    );
    assert_eq!(formats("gemma_style.jinja"), (None, Some("generic")));
    assert_eq!(formats("smollm2.jinja"), (None, Some("generic")));
}

/// Claude Code sends such turns to whatever model.
#[test]
fn later_system_turns_stay_where_the_template_shows_them_and_are_marked_elsewhere() {
    let chat = ChatPrompt {
        messages: vec![
            Message::text(Role::System, "base"),
            Message::text(Role::User, "hi"),
            Message::text(Role::System, "skills"),
            Message::text(Role::Assistant, "yes"),
            Message::text(Role::User, "go"),
        ],
        ..ChatPrompt::default()
    };
    let shown = |template: &str| {
        let model = model(template, &json!({}));
        let rendered = model
            .template()
            .unwrap()
            .render(&chat, &ReasoningOptions::default());
        rendered.unwrap()
    };
    let in_place = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    assert_eq!(
        shown(in_place),
        "[system]base[user]hi[system]skills[assistant]yes[user]go"
    );
    let at_the_beginning = "{% for m in messages %}\
        {% if m.role == 'system' and not loop.first %}\
        {{ raise_exception('System message must be at the beginning.') }}{% endif %}\
        [{{ m.role }}]{{ m.content }}{% endfor %}";
    assert_eq!(
        shown(at_the_beginning),
        "[system]base[user]hi[user]<system-reminder>\nskills\n</system-reminder>\
         [assistant]yes[user]go"
    );
    let alternating = "{% for m in messages %}\
        {% if (m.role == 'user') != (loop.index0 % 2 == 0) %}\
        {{ raise_exception('roles must alternate') }}{% endif %}\
        [{{ m.role }}]{{ m.content }}{% endfor %}";
    assert_eq!(
        shown(alternating),
        "[user]base\n\nhi\n\n<system-reminder>\nskills\n</system-reminder>[assistant]yes[user]go"
    );
}

#[test]
fn what_becomes_of_a_turn_does_not_depend_on_later_ones() {
    let call = |id: &str| ToolCall {
        id: id.into(),
        name: "f".into(),
        arguments: "{}".into(),
    };
    let result = |id: &str| Message {
        tool_call_id: Some(id.into()),
        ..Message::text(Role::Tool, "ok")
    };
    let messages = [
        Message::text(Role::System, "base"),
        Message::text(Role::System, "more"),
        Message::text(Role::User, "hi"),
        Message {
            tool_calls: vec![call("call_1"), call("call_2")],
            ..Message::text(Role::Assistant, "let me see")
        },
        result("call_1"),
        result("call_2"),
        Message::text(Role::User, "hurry"),
        Message::text(Role::Assistant, "done"),
        Message::text(Role::User, "go"),
        Message::text(Role::System, "note"),
        Message::text(Role::Assistant, "ok"),
        Message::text(Role::User, "bye"),
    ];
    for name in [
        "gemma_style",
        "llama3_style",
        "mistral_style",
        "qwen3",
        "smollm2",
    ] {
        let model = model(&fixture(&format!("{name}.jinja")), &json!({}));
        let given = |count: usize| {
            let chat = ChatPrompt {
                messages: messages[..count].to_vec(),
                ..ChatPrompt::default()
            };
            let variables = model
                .template()
                .unwrap()
                .variables(&chat, &ReasoningOptions::default());
            variables.unwrap()["messages"].as_array().unwrap().clone()
        };
        let whole = given(messages.len());
        for count in [3, 7, 10] {
            let before = given(count);
            assert_eq!(before, whole[..before.len()], "{name}: {count}");
        }
    }
}

#[test]
fn a_template_gets_one_call_a_turn_when_it_takes_no_more() {
    let model = model(&fixture("llama3_style.jinja"), &json!({}));
    let call = |id: &str| ToolCall {
        id: id.into(),
        name: id.into(),
        arguments: "{}".into(),
    };
    let result = |id: &str| Message {
        tool_call_id: Some(id.into()),
        ..Message::text(Role::Tool, id)
    };
    let chat = ChatPrompt {
        messages: vec![
            Message::text(Role::User, "hi"),
            Message {
                tool_calls: vec![call("one"), call("two")],
                content: Vec::new(),
                ..Message::text(Role::Assistant, "")
            },
            result("two"),
            result("one"),
        ],
        ..ChatPrompt::default()
    };
    let variables = model
        .template()
        .unwrap()
        .variables(&chat, &ReasoningOptions::default())
        .unwrap();
    let turns: Vec<_> = variables["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| {
            let call = &turn["tool_calls"][0]["function"]["name"];
            call.as_str()
                .or(turn["content"].as_str())
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(turns, ["hi", "one", "one", "two", "two"]);
}

#[test]
fn broken_and_missing_arguments_still_render() {
    let template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\
        {% for call in m.tool_calls or [] %}\
        {% for key, value in call.function.arguments.items() %}<{{ key }}={{ value }}>{% endfor %}\
        {% endfor %}{% endfor %}";
    let model = model(template, &json!({}));
    let rendered = |arguments: &str| {
        let call = Message {
            content: Vec::new(),
            tool_calls: vec![ToolCall {
                id: "call_1".into(),
                name: "f".into(),
                arguments: arguments.into(),
            }],
            ..Message::text(Role::Assistant, "")
        };
        let chat = ChatPrompt {
            messages: vec![Message::text(Role::User, "hi"), call],
            ..ChatPrompt::default()
        };
        let options = ReasoningOptions::default();
        model.template().unwrap().render(&chat, &options).unwrap()
    };
    assert_eq!(rendered(r#"{"a": 1}"#), "[user]hi[assistant]<a=1>");
    assert_eq!(rendered(""), "[user]hi[assistant]");
    assert_eq!(
        rendered(r#"{"a": "#),
        r#"[user]hi[assistant]<arguments={"a": >"#
    );
}

#[test]
fn a_switch_with_a_default_in_the_template_is_a_switch() {
    let template = "{% set enable_thinking = enable_thinking if enable_thinking is defined \
        else true %}{{ enable_thinking }}";
    let model = model(template, &json!({}));
    let template = model.template().unwrap();
    assert!(template.has_reasoning_switch());
    let chat = ChatPrompt {
        messages: vec![Message::text(Role::User, "hi")],
        ..ChatPrompt::default()
    };
    let off = ReasoningOptions {
        enabled: Some(false),
        ..ReasoningOptions::default()
    };
    assert_eq!(template.render(&chat, &off).unwrap(), "False");
    let default = ReasoningOptions::default();
    assert_eq!(template.render(&chat, &default).unwrap(), "True");
}
