//! What constraints accept and refuse, token by token.

use std::fs;

use macmlx_chat::{ChatModel, Constraint};
use macmlx_inference::{
    ChatPrompt, Grammar, InferenceError, Language, Message, Prompt, ReasoningOptions, Role,
    ToolChoice, ToolDefinition,
};
use serde_json::{Value, json};

use crate::tokenizers;

const PLAIN: &str = "{% for m in messages %}{{ m.content }}{% endfor %}";
const HERMES: &str = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}\
    {{ '<tool_call>' if false }}";
const MAY_THINK: &str = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}\
    {{ '<tool_call><think></think>' if false }}";
const HAS_THOUGHT: &str = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}\
    {{ '<tool_call>' if false }}{{ '<think>\n\n</think>\n\n' }}";
const THINKS: &str = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}\
    {{ '<tool_call>' if false }}{{ '<think>\n' }}";

fn model(template: &str) -> ChatModel {
    let folder = tokenizers::byte_level();
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let special = json!({"eos_token": "<|im_end|>"}).to_string();
    fs::write(folder.path().join("tokenizer_config.json"), special).unwrap();
    ChatModel::load(folder.path(), "org/model").unwrap()
}

fn grammar(language: Language) -> Grammar {
    Grammar {
        language,
        param: "response_format".into(),
    }
}

fn schema(schema: Value) -> Grammar {
    grammar(Language::JsonSchema(schema))
}

fn tool(name: &str, strict: bool) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: None,
        parameters: json!({
            "type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"],
            "additionalProperties": false,
        }),
        strict,
    }
}

fn chat(tools: Vec<ToolDefinition>, tool_choice: ToolChoice) -> ChatPrompt {
    ChatPrompt {
        messages: vec![Message::text(Role::User, "go")],
        tools,
        tool_choice,
        ..ChatPrompt::default()
    }
}

fn constraint(
    model: &ChatModel,
    chat: &ChatPrompt,
    answer: Option<&Grammar>,
) -> Result<Option<Constraint>, InferenceError> {
    let prompt = Prompt::Chat(chat.clone());
    let rendered = model.prompt(&prompt, &ReasoningOptions::default())?;
    model.constraint(&rendered, answer)
}

/// How many bytes of the output the constraint takes, and whether the output may end there.
fn taken(model: &ChatModel, mut constraint: Constraint, output: &str) -> (usize, bool) {
    let tokenizer = model.tokenizer();
    let mut bytes = 0;
    for id in tokenizer.encode(output, false).unwrap() {
        if constraint.is_complete() || !constraint.allowed().unwrap()[id as usize] {
            break;
        }
        constraint.advance(id).unwrap();
        bytes += tokenizer.token_bytes(id).len();
    }
    let may_end = constraint.is_complete() || {
        let allowed = constraint.allowed().unwrap();
        let mut eos = tokenizer.eos_token_ids().iter();
        eos.any(|id| allowed[*id as usize])
    };
    (bytes, may_end)
}

/// Asserts that a constraint takes whole outputs, and refuses others before their end.
fn check(template: &str, chat: &ChatPrompt, answer: Option<&Grammar>, good: &[&str], bad: &[&str]) {
    let model = model(template);
    let constraint = constraint(&model, chat, answer).unwrap().unwrap();
    for output in good {
        let taken = taken(&model, constraint.clone(), output);
        assert_eq!(taken, (output.len(), true), "{output}");
    }
    for output in bad {
        let (bytes, may_end) = taken(&model, constraint.clone(), output);
        assert!(bytes < output.len() || !may_end, "{output}");
    }
}

fn plain() -> ChatPrompt {
    chat(Vec::new(), ToolChoice::Auto)
}

#[test]
fn dates_are_those_of_the_calendar() {
    let check = |format: &str, good: &[&str], bad: &[&str]| {
        let format = schema(json!({"type": "string", "format": format}));
        check(PLAIN, &plain(), Some(&format), good, bad);
    };
    check(
        "date",
        &[
            r#""2024-02-29""#,
            r#""2000-02-29""#,
            r#""1999-02-28""#,
            r#""0004-02-29""#,
        ],
        &[
            r#""2023-02-29""#,
            r#""1900-02-29""#,
            r#""2024-02-30""#,
            r#""0000-02-29""#,
        ],
    );
    check(
        "date",
        &[r#""0001-01-01""#, r#""2023-12-31""#, r#""2023-04-30""#],
        &[r#""0000-01-01""#, r#""2024-13-01""#, r#""2023-04-31""#],
    );
    check(
        "date-time",
        &[
            r#""2024-02-29T23:59:59Z""#,
            r#""2023-10-29t00:00:00.25+01:00""#,
        ],
        &[r#""2023-02-29T00:00:00Z""#, r#""2024-02-29T23:59:60Z""#],
    );
    check(
        "time",
        &[r#""09:05:10Z""#],
        &[r#""23:59:60Z""#, r#""09:05Z""#],
    );
}

#[test]
fn languages_of_the_answer() {
    let object = json!({
        "type": "object", "properties": {"a": {"enum": ["x", "y"]}, "n": {"type": "integer"}},
        "required": ["a"], "additionalProperties": false,
    });
    check(
        PLAIN,
        &plain(),
        Some(&schema(object)),
        &[r#"{"a":"x"}"#, r#"{"a": "y", "n": 12}"#],
        &[
            "{\n  \"a\": \"y\"}",
            "x",
            r#"{"a":"z"}"#,
            "{}",
            r#"{"a":"x","b":1}"#,
            r#"{"a":"x"} and"#,
        ],
    );
    let any = grammar(Language::JsonObject);
    check(
        PLAIN,
        &plain(),
        Some(&any),
        &["{}", r#"{"b": [1, {"c": null}]}"#],
        &["[]", "1"],
    );
    let regex = grammar(Language::Regex(r"^\d{3}/[a-c]+$".into()));
    check(
        PLAIN,
        &plain(),
        Some(&regex),
        &["123/abc"],
        &["12/a", "123/abd"],
    );
    let choice = grammar(Language::Choice(vec![
        "yes".into(),
        "yes, \"so\"".into(),
        "nö".into(),
    ]));
    check(
        PLAIN,
        &plain(),
        Some(&choice),
        &["yes", "yes, \"so\"", "nö"],
        &["no", "yes,", ""],
    );
    let lark = grammar(Language::Rules(
        "start: number (\" + \" number)*\nnumber: /[0-9]+/\n".into(),
    ));
    check(
        PLAIN,
        &plain(),
        Some(&lark),
        &["1", "12 + 3"],
        &["+", "1 +"],
    );
    let gbnf = grammar(Language::Rules(
        "root ::= item+\nitem ::= \"(\" root? \")\" | [a-z]{2}\n".into(),
    ));
    check(
        PLAIN,
        &plain(),
        Some(&gbnf),
        &["(ab)", "((ab)cd)ef", "()"],
        &["(", "a", "(ab))"],
    );
}

#[test]
fn what_cannot_be_enforced_is_refused_with_the_clients_name_for_it() {
    let model = model(PLAIN);
    for (language, named) in [
        (Language::JsonSchema(json!({"not": {}})), "`not`"),
        (Language::JsonSchema(json!({"type": "word"})), "word"),
        (Language::Regex("(?=a)".into()), "look"),
        (Language::Regex("(".into()), "unclosed"),
        (Language::Choice(Vec::new()), "nothing"),
        (Language::Rules("start: nowhere".into()), "nowhere"),
        (Language::Rules("root ::= nowhere".into()), "nowhere"),
    ] {
        let answer = grammar(language);
        match constraint(&model, &plain(), Some(&answer)) {
            Err(InferenceError::Unsupported { param, reason }) => {
                assert_eq!(param, "response_format");
                assert!(reason.to_lowercase().contains(named), "{reason}");
            }
            other => panic!("{answer:?}: {other:?}"),
        }
    }
}

#[test]
fn the_answer_begins_behind_reasoning() {
    let answer = || schema(json!({"const": 7}));
    check(
        MAY_THINK,
        &plain(),
        Some(&answer()),
        &["7", "<think>{9}</think>\n\n7", "<think>\n</think>7"],
        &["<think>7", "<think>a</think>8", "a</think>7"],
    );
    check(
        HAS_THOUGHT,
        &plain(),
        Some(&answer()),
        &["7"],
        &["<think>a</think>7", "a</think>7"],
    );
    check(
        THINKS,
        &plain(),
        Some(&answer()),
        &["so</think>\n7", "</think>7"],
        &["7", "so</think>so"],
    );
}

#[test]
fn calls_that_must_be_made() {
    let tools = || vec![tool("f", false), tool("g", false)];
    let call = |name: &str, x: &str| {
        format!(
            "<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {{\"x\": {x}}}}}\n</tool_call>"
        )
    };
    let (f, g) = (call("f", "1"), call("g", "-2"));
    check(
        HERMES,
        &chat(tools(), ToolChoice::Required),
        None,
        &[&f, &g, &format!("{f}\n{g}")],
        &[
            "no",
            &call("h", "1"),
            &call("f", "\"1\""),
            &format!("{f} and"),
        ],
    );
    let single = ChatPrompt {
        single_tool_call: true,
        ..chat(tools(), ToolChoice::Required)
    };
    check(HERMES, &single, None, &[&f], &[&format!("{f}\n{g}")]);
}

#[test]
fn strict_tools_in_free_text() {
    let tools = vec![tool("f", true), tool("g", true)];
    let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 5}}\n</tool_call>";
    let wrong = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"5\"}}\n</tool_call>";
    check(
        HERMES,
        &chat(tools, ToolChoice::Auto),
        None,
        &[
            "",
            "I think <not>.",
            call,
            &format!("Let me see.\n{call}\n{call} Done."),
        ],
        &[wrong, &format!("Let me see: {wrong}"), "a <tool_call>b"],
    );
}

#[test]
fn an_answer_or_a_call() {
    let tools = vec![tool("f", false)];
    let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 5}}\n</tool_call>";
    check(
        HERMES,
        &chat(tools, ToolChoice::Auto),
        Some(&schema(
            json!({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}),
        )),
        &[call, r#"{"a": 1}"#],
        &["text", r#"{"a": 2}"#],
    );
}

#[test]
fn free_outputs_have_no_constraint() {
    let model = model(HERMES);
    let tools = vec![tool("f", false)];
    for chat in [
        plain(),
        chat(tools.clone(), ToolChoice::Auto),
        chat(tools, ToolChoice::None),
    ] {
        assert!(constraint(&model, &chat, None).unwrap().is_none());
    }
}

#[test]
fn a_strict_tool_that_cannot_be_enforced_is_refused_and_another_is_not() {
    let model = model(HERMES);
    for (parameters, place) in [
        (json!({"type": "string"}), "`/`"),
        (
            json!({"properties": {"a": {"type": "string", "pattern": "("}}}),
            "/properties/a",
        ),
        (json!({"properties": {"a": {"not": {}}}}), "`not`"),
        (json!({"$ref": "#/nowhere"}), "nowhere"),
    ] {
        for choice in [ToolChoice::Auto, ToolChoice::Required] {
            let mut tool = ToolDefinition {
                parameters: parameters.clone(),
                ..tool("f", true)
            };
            let error = constraint(&model, &chat(vec![tool.clone()], choice.clone()), None);
            let Err(InferenceError::Unsupported { param, reason }) = error else {
                panic!("{parameters}");
            };
            assert_eq!(param, "strict");
            assert!(reason.contains("`f`") && reason.contains(place), "{reason}");
            tool.strict = false;
            assert!(constraint(&model, &chat(vec![tool], choice), None).is_ok());
        }
    }
    let odd = chat(vec![tool("two words", false)], ToolChoice::Required);
    let error = constraint(&model, &odd, None).unwrap_err().to_string();
    assert!(error.contains("`two words`"), "{error}");
}

/// Schemas as tools write them: what can be enforced of them is, whatever else they say.
#[test]
fn one_part_that_cannot_be_enforced_frees_that_part_alone() {
    let decimal = json!({"anyOf": [
        {"type": "number"}, {"type": "string", "pattern": "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"},
    ]});
    for (part, good, bad) in [
        (decimal, r#""1.5""#, "[1]"),
        (json!({"$ref": "#/$defs/gone"}), "[1]", "{"),
        (json!({"type": "STRING"}), r#""a""#, "1"),
        (json!({"type": "string", "nullable": true}), "null", "1"),
        (json!({"type": "string", "enum": [1, 2]}), "2", "3"),
        (json!({"type": "string", "required": null}), r#""a""#, "1"),
        (json!({"type": "array", "items": null}), "[1]", "1"),
        (
            json!({"type": "object", "propertyNames": {"type": "string"},
                   "additionalProperties": {"type": "integer"}}),
            r#"{"a": 1}"#,
            r#"{"a": "x"}"#,
        ),
        (json!({"type": "text"}), "1", "}"),
    ] {
        let parameters = json!({
            "type": "OBJECT", "properties": {"p": part, "n": {"type": "integer"}},
            "required": ["p", "n"], "additionalProperties": false,
        });
        let call = |arguments: String| {
            format!("<tool_call>\n{{\"name\": \"f\", \"arguments\": {arguments}}}\n</tool_call>")
        };
        let object = |p: &str, n: &str| format!("{{\"p\": {p}, \"n\": {n}}}");
        let (right, wrong) = (object(good, "1"), [object(good, "\"x\""), object(bad, "1")]);
        let tool = ToolDefinition {
            parameters: parameters.clone(),
            ..tool("f", false)
        };
        check(
            HERMES,
            &chat(vec![tool], ToolChoice::Named("f".into())),
            None,
            &[&call(right.clone())],
            &wrong.clone().map(call).each_ref().map(String::as_str),
        );
        check(
            PLAIN,
            &plain(),
            Some(&grammar(Language::LooseJsonSchema(parameters))),
            &[&right],
            &wrong.each_ref().map(String::as_str),
        );
    }
}
