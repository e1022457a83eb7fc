//! Calls the request demands: begun in the prompt, read from there, checked at the end.

use std::fs;

use macmlx_chat::{ChatModel, ChoiceOutput, FORMATS, Kind, OutputParser, Piece, Tools};
use macmlx_inference::{
    ChatPrompt, FinishReason, GenerationEvent, InferenceError, Message, ReasoningOptions, Role,
    StopConditions, ToolCallPart, ToolChoice, ToolDefinition,
};
use serde_json::{Value, json};

use crate::tokenizers;

const HERMES: &str = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools | length }}\
    {{ '<tool_call>' if false }}";
const THINKING: &str = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools | length }}\
    {{ '<tool_call>' if false }}{{ '<think>\n' }}";

fn model(template: &str) -> ChatModel {
    let folder = tokenizers::byte_level();
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    ChatModel::load(folder.path(), "org/model").unwrap()
}

fn tool(name: &str, parameters: Value, strict: bool) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: None,
        parameters,
        strict,
    }
}

fn prompt(tool_choice: ToolChoice) -> ChatPrompt {
    ChatPrompt {
        messages: vec![Message::text(Role::User, "go")],
        tools: vec![tool("f", json!({}), false), tool("g", json!({}), false)],
        tool_choice,
        ..ChatPrompt::default()
    }
}

fn render(model: &ChatModel, chat: &ChatPrompt) -> Result<macmlx_chat::Rendered, InferenceError> {
    model.render(chat, &ReasoningOptions::default())
}

/// Events of an output, text as it was and calls as `name(arguments)`.
fn run(
    model: &ChatModel,
    chat: &ChatPrompt,
    output: &str,
    reason: FinishReason,
) -> Result<String, (String, InferenceError)> {
    let rendered = render(model, chat).unwrap();
    let stream = model.output(&rendered, &StopConditions::default());
    let mut choice = ChoiceOutput::new(0, stream);
    let mut out = String::new();
    let mut take = |event| match event {
        GenerationEvent::Text { text, .. } => out.push_str(&text),
        GenerationEvent::ToolCall { part, .. } => match part {
            ToolCallPart::Start { name, .. } => out.push_str(&(name + "(")),
            ToolCallPart::Arguments(text) => out.push_str(&text),
            ToolCallPart::End => out.push(')'),
        },
        GenerationEvent::Finished { reason, .. } => out.extend([" ", &format!("{reason:?}")]),
        event => panic!("{event:?}"),
    };
    let mut result = Ok(());
    for id in model.tokenizer().encode(output, false).unwrap() {
        result = result.and_then(|()| choice.push(id, None, &mut take));
    }
    match result.and_then(|()| choice.finish(reason, &mut take)) {
        Ok(()) => Ok(out),
        Err(error) => Err((out, error)),
    }
}

#[test]
fn the_prompt_is_the_templates_own() {
    for choice in [
        ToolChoice::Auto,
        ToolChoice::Required,
        ToolChoice::Named("g".into()),
    ] {
        let rendered = render(&model(HERMES), &prompt(choice.clone())).unwrap();
        assert_eq!(rendered.text, "go2");
        // A model that reasons may do so before its call.
        let rendered = render(&model(THINKING), &prompt(choice)).unwrap();
        assert_eq!(rendered.text, "go2<think>\n");
        assert!(rendered.starts_in_reasoning);
    }
}

#[test]
fn a_tool_that_is_not_offered_cannot_be_demanded() {
    let error = render(&model(HERMES), &prompt(ToolChoice::Named("h".into()))).unwrap_err();
    assert!(matches!(
        error,
        InferenceError::InvalidRequest { param: Some(param), .. } if param == "tool_choice"
    ));
}

fn strict(parameters: Value) -> ChatPrompt {
    ChatPrompt {
        tools: vec![tool("f", parameters, true)],
        ..prompt(ToolChoice::Auto)
    }
}

#[test]
fn arguments_of_a_strict_tool_satisfy_its_schema_or_nobody_sees_them() {
    let model = model(HERMES);
    let chat = strict(json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": false,
    }));
    let call = |arguments: &str, reason| {
        let output =
            format!("<tool_call>{{\"name\": \"f\", \"arguments\": {arguments}}}</tool_call>");
        run(&model, &chat, &output, reason)
    };
    let good = call("{\"a\": 1}", FinishReason::Stop);
    assert_eq!(good.unwrap(), "f({\"a\": 1}) ToolCalls");
    for wrong in ["{}", "{\"a\": \"1\"}", "{\"a\": 1, \"b\": 2}", "{\"a\": x}"] {
        let (seen, error) = call(wrong, FinishReason::Stop).unwrap_err();
        assert_eq!(seen, "", "{wrong}");
        assert!(error.to_string().contains("`f`"), "{error}");
        assert!(matches!(error, InferenceError::InvalidOutput { .. }));
    }
    let cut = run(
        &model,
        &chat,
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\"",
        FinishReason::Length,
    );
    assert_eq!(cut.unwrap(), "f({\"a\") Length");
}

#[test]
fn only_a_strict_schema_must_compile() {
    let model = model(HERMES);
    for (schema, place) in [
        (json!({"type": "thing"}), "/type"),
        (
            json!({"properties": {"a": {"pattern": "("}}}),
            "/properties/a/pattern",
        ),
        (json!({"$ref": "http://example.org/schema"}), "example.org"),
        (json!({"$ref": "#/nowhere"}), "nowhere"),
    ] {
        let error = render(&model, &strict(schema.clone())).unwrap_err();
        let InferenceError::Unsupported { param, reason } = &error else {
            panic!("{error}");
        };
        assert_eq!(param, "tools");
        assert!(reason.contains("`f`") && reason.contains(place), "{reason}");
        let mut loose = strict(schema);
        loose.tools[0].strict = false;
        assert!(render(&model, &loose).is_ok());
    }
}

/// What the engine writes at the end of a reasoning budget ends the reasoning, in every format.
#[test]
fn every_format_answers_after_its_reasoning_is_closed() {
    let mut closed = 0;
    for format in FORMATS
        .iter()
        .filter(|format| format.kind() != Kind::ToolCalls)
    {
        let open = match format.name() {
            "harmony" => "<|channel|>analysis<|message|>",
            _ => format.open()[0],
        };
        let mut parser = OutputParser::new(&[*format], Tools::default(), "");
        let mut spans = parser.push(open);
        spans.extend(parser.push("Hm so"));
        assert!(parser.in_reasoning(), "{}", format.name());
        spans.extend(parser.push(format.reasoning_close().unwrap()));
        assert!(!parser.in_reasoning(), "{}", format.name());
        spans.extend(parser.push("Yes"));
        spans.extend(parser.finish());
        let (mut reasoning, mut text) = (String::new(), String::new());
        for span in spans {
            match span.piece {
                Piece::Text(more) => text.push_str(&more),
                Piece::Reasoning(more) => reasoning.push_str(&more),
                Piece::ToolCall(part) => panic!("{part:?}"),
            }
        }
        assert_eq!(
            (reasoning.as_str(), text.as_str()),
            ("Hm so", "Yes"),
            "{}",
            format.name()
        );
        closed += 1;
    }
    assert!(closed > 10);
}
