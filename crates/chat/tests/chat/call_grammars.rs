//! Calls of every format held to their schemas: what templates render is accepted, what breaks a
//! schema is refused, and whatever may be written is read back to what the schema allows.

use jsonschema::Validator;
use macmlx_chat::{ChatModel, Constraint};
use macmlx_inference::{ChatPrompt, Message, ReasoningOptions, Role, ToolChoice, ToolDefinition};
use macmlx_output::formats::{FORMATS, Format, Kind};
use serde_json::{Value, json};

use crate::{
    call_schemas::{Case, cases, object},
    call_templates::render,
    walks::{self, Dice, EOS, MARKERS, Markers, Read, likes, read, tokens, walk},
};

/// Number of walks for each format, vocabulary, set of tools and choice.
const WALKS: usize = 3;

fn formats() -> impl Iterator<Item = &'static dyn Format> {
    FORMATS
        .iter()
        .copied()
        .filter(|format| format.kind() != Kind::Reasoning)
}

fn model(format: &dyn Format, markers: Markers) -> ChatModel {
    let (reasoning, end) = match format.name() {
        "harmony" => (Some(format), "<|start|>assistant"),
        "functionary_v32" => (None, ">>>"),
        _ => (None, ""),
    };
    walks::model(reasoning, Some(format), markers, end)
}

fn tool(name: &str, parameters: &Value) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: None,
        parameters: parameters.clone(),
        strict: true,
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

fn constraint(model: &ChatModel, chat: &ChatPrompt) -> Constraint {
    let rendered = model.render(chat, &ReasoningOptions::default()).unwrap();
    model.constraint(&rendered, None).unwrap().unwrap()
}

/// What is left of an output that is not taken; `None`: it is taken and may end there.
fn refused(model: &ChatModel, mut constraint: Constraint, output: &str) -> Option<String> {
    let ids = model.tokenizer().encode(output, false).unwrap();
    for (index, id) in ids.iter().enumerate() {
        if constraint.is_complete() || !constraint.allowed().unwrap()[*id as usize] {
            return Some(model.tokenizer().detokenize(&ids[index..]));
        }
        constraint.advance(*id).unwrap();
    }
    let may_end = constraint.is_complete() || {
        let eos = model.tokenizer().token_id(EOS).unwrap();
        constraint.allowed().unwrap()[eos as usize]
    };
    (!may_end).then(|| "<the end>".into())
}

#[test]
fn what_templates_render_is_accepted_and_what_breaks_the_schema_is_not() {
    let cases = cases();
    let mut wrong = Vec::new();
    for format in formats() {
        for markers in MARKERS {
            let model = model(format, markers);
            for (index, case) in cases.iter().enumerate() {
                // Tokens that are text differ little from spelled ones.
                if markers == Markers::Added && index % 3 > 0 {
                    continue;
                }
                let at = format!("{} {markers:?} {}", format.name(), case.name);
                check_case(format, &model, case, markers, &mut |what| {
                    wrong.push(format!("{at}: {what}"));
                });
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check_case(
    format: &dyn Format,
    model: &ChatModel,
    case: &Case,
    markers: Markers,
    fail: &mut dyn FnMut(String),
) {
    let tools = vec![
        tool("f", &case.schema),
        tool("f_2", &json!({"type": "object"})),
    ];
    let chat = chat(tools, ToolChoice::Required);
    let start = constraint(model, &chat);
    for arguments in &case.good {
        let output = render(format.name(), &[("f", arguments)]);
        // A special token is no text, whatever it spells.
        let is_text = |token: &&str| arguments.to_string().contains(*token);
        if markers == Markers::Special && tokens(&[format]).iter().any(is_text) {
            continue;
        }
        if let Some(rest) = refused(model, start.clone(), &output) {
            fail(format!("{rest:?} of {output:?} is refused"));
            continue;
        }
        let ids = model.tokenizer().encode(&output, false).unwrap();
        let read = read(model, &chat, None, &ids).calls;
        let is_read = read.len() == 1
            && read[0].0 == "f"
            && serde_json::from_str(&read[0].1).ok().as_ref() == Some(arguments);
        if !is_read {
            fail(format!("{output:?} is read as {read:?}"));
        }
    }
    for arguments in &case.bad {
        let output = render(format.name(), &[("f", arguments)]);
        if refused(model, start.clone(), &output).is_none() {
            fail(format!("{output:?} is accepted"));
        }
    }
}

#[test]
fn other_tools_text_and_more_calls_than_asked_for() {
    let nothing = json!({});
    for format in formats() {
        let model = model(format, Markers::Special);
        let schema = object(&json!({}), &[]);
        let tools = || vec![tool("f", &schema), tool("g", &schema)];
        let one = |name: &str| render(format.name(), &[(name, &nothing)]);
        let two = render(format.name(), &[("f", &nothing), ("g", &nothing)]);
        let takes = |chat: &ChatPrompt, output: &str| {
            refused(&model, constraint(&model, chat), output).is_none()
        };
        let name = format.name();
        let required = chat(tools(), ToolChoice::Required);
        assert!(
            takes(&required, &one("f")) && takes(&required, &one("g")),
            "{name}"
        );
        assert!(!takes(&required, &one("h")), "{name}");
        assert!(
            !takes(&required, "I will not") && !takes(&required, ""),
            "{name}"
        );
        assert!(!takes(&required, &format!("{} and", one("f"))), "{name}");
        // The model stops behind the only call there can be.
        assert_eq!(takes(&required, &two), name != "harmony", "{name}: {two}");
        let named = chat(tools(), ToolChoice::Named("g".into()));
        assert!(
            takes(&named, &one("g")) && !takes(&named, &one("f")),
            "{name}"
        );
        let twice = render(name, &[("g", &nothing), ("g", &nothing)]);
        assert!(!takes(&named, &twice), "{name}");
        let single = ChatPrompt {
            single_tool_call: true,
            ..chat(tools(), ToolChoice::Required)
        };
        assert!(takes(&single, &one("f")) && !takes(&single, &two), "{name}");
    }
}

/// What is wrong with the calls of an output.
fn mistake(
    calls: &[(String, String)],
    tools: &[ToolDefinition],
    validators: &[Validator],
) -> Option<String> {
    calls.iter().find_map(|(name, arguments)| {
        let Some(index) = tools.iter().position(|tool| tool.name == *name) else {
            return Some(format!("`{name}` is not offered"));
        };
        let value: Value = match serde_json::from_str(arguments) {
            Ok(value) => value,
            Err(error) => return Some(format!("{error}: {arguments:?}")),
        };
        let error = validators[index].validate(&value).err()?;
        Some(format!("{error}: {arguments:?}"))
    })
}

#[test]
fn whatever_may_be_written_is_read_as_what_the_schema_allows() {
    let cases = cases();
    let mut dice = Dice(0x1234_5678_9ABC_DEF1);
    let mut wrong = Vec::new();
    for format in formats() {
        let likes = likes(&[format]);
        for markers in [Markers::Spelled, Markers::Special] {
            let model = model(format, markers);
            let (mut walks, mut forced, mut called) = (0, 0, 0);
            for (index, case) in cases.iter().enumerate() {
                let other = &cases[(index + 1) % cases.len()];
                let tools = vec![tool("f", &case.schema), tool("f_2", &other.schema)];
                let validators: Vec<Validator> = tools
                    .iter()
                    .map(|tool| jsonschema::validator_for(&tool.parameters).unwrap())
                    .collect();
                // Each way of asking for each set of tools, on one vocabulary or the other.
                let is_spelled = markers == Markers::Spelled;
                let choice = if is_spelled == (index % 2 == 0) {
                    ToolChoice::Required
                } else {
                    ToolChoice::Auto
                };
                let is_forced = choice == ToolChoice::Required;
                let chat = chat(tools.clone(), choice);
                let start = constraint(&model, &chat);
                for _ in 0..WALKS {
                    let Some(ids) = walk(&model, start.clone(), &likes, &mut dice) else {
                        continue;
                    };
                    walks += 1;
                    forced += usize::from(is_forced);
                    let Read { calls, text: rest } = read(&model, &chat, None, &ids);
                    called += calls.len();
                    let mistake = if is_forced && calls.is_empty() {
                        Some("no call".into())
                    } else if is_forced && !rest.trim().is_empty() {
                        Some(format!("text {rest:?}"))
                    } else {
                        mistake(&calls, &tools, &validators)
                    };
                    if let Some(mistake) = mistake {
                        let text = model.tokenizer().detokenize(&ids);
                        let name = format.name();
                        wrong.push(format!(
                            "{name} {markers:?} {}: {mistake} in {text:?}",
                            case.name
                        ));
                    }
                }
            }
            let at = format!("{} {markers:?}: {walks} {forced} {called}", format.name());
            assert!(walks > 12 && forced > 3 && called > 5, "{at}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What agents send without asking for it to be enforced.
#[test]
fn whatever_schema_a_tool_has_it_can_be_called() {
    let schemas = [
        json!(null),
        json!({}),
        json!({"type": "object", "properties": {"s": {"type": "string", "format": "uri-thing"},
               "n": {"not": {"type": "null"}}, "p": {"type": "string", "pattern": "(?=a)b"}}}),
        json!({"properties": {"s": {"type": "string", "pattern": "("}}}),
        json!({"type": "object", "properties": {"r": {"$ref": "#/nowhere"},
               "h": {"$ref": "http://example.org/schema"}}, "required": ["r", "unlisted"]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
               "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "minProperties": 1}),
        json!({"type": "object", "properties": {"t": {"type": ["string", "number"], "minimum": 3},
               "l": {"type": "array", "uniqueItems": true, "items": [{"type": "string"}]},
               "d": {"type": "string", "format": "date-time", "minLength": 3}, "no": false,
               "node": {"$ref": "#"}}}),
        json!({"type": "string"}),
        json!({"properties": 1}),
    ];
    let mut dice = Dice(0xFEDC_BA98_7654_3211);
    for format in formats() {
        let likes = likes(&[format]);
        let model = model(format, Markers::Special);
        let mut called = 0;
        for schema in &schemas {
            let tools = vec![ToolDefinition {
                strict: false,
                ..tool("f", schema)
            }];
            let chat = chat(tools, ToolChoice::Required);
            let start = constraint(&model, &chat);
            let Some(ids) = walk(&model, start, &likes, &mut dice) else {
                continue;
            };
            let calls = read(&model, &chat, None, &ids).calls;
            let text = model.tokenizer().detokenize(&ids);
            let is_object = |arguments: &String| {
                serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object())
            };
            let is_right =
                |(name, arguments): &(String, String)| name == "f" && is_object(arguments);
            let at = format!("{}: {schema}: {text:?} {calls:?}", format.name());
            assert!(!calls.is_empty() && calls.iter().all(is_right), "{at}");
            called += 1;
        }
        assert!(called > 4, "{}: {called}", format.name());
    }
}

/// What a schema may hold of something, grammars hold too, and quickly.
#[test]
fn large_schemas() {
    let names: Vec<String> = (0..300).map(|index| format!("choice {index}")).collect();
    let properties: serde_json::Map<String, Value> = (0..40)
        .map(|index| (format!("p{index}"), json!({"type": ["string", "null"]})))
        .chain([
            ("e".into(), json!({ "enum": names })),
            ("l".into(), json!({"type": "string", "maxLength": 100_000})),
        ])
        .collect();
    let schema = object(&Value::Object(properties), &["e", "l"]);
    let arguments = json!({"p7": null, "p39": "x", "e": "choice 299", "l": "y".repeat(200)});
    for format in formats() {
        let model = model(format, Markers::Special);
        let chat = chat(vec![tool("f", &schema)], ToolChoice::Required);
        let output = render(format.name(), &[("f", &arguments)]);
        let refused = refused(&model, constraint(&model, &chat), &output);
        assert_eq!(refused, None, "{}: {output}", format.name());
    }
}
