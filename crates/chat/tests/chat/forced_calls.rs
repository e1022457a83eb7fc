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
const FUNCTIONARY: &str = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools | length }}\
    {{ '>>>all' if false }}>>>";

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
fn the_prompt_ends_with_the_beginning_of_the_call() {
    let text = |template, choice| render(&model(template), &prompt(choice)).unwrap().text;
    assert_eq!(text(HERMES, ToolChoice::Auto), "go2");
    assert_eq!(
        text(HERMES, ToolChoice::Required),
        "go2<tool_call>\n{\"name\":"
    );
    assert_eq!(
        text(HERMES, ToolChoice::Named("g".into())),
        "go2<tool_call>\n{\"name\": \"g\", \"arguments\":"
    );
    assert_eq!(
        text(THINKING, ToolChoice::Named("g".into())),
        "go2<think>\n\n</think>\n\n<tool_call>\n{\"name\": \"g\", \"arguments\":"
    );
    assert_eq!(
        text(FUNCTIONARY, ToolChoice::Named("g".into())),
        "go2>>>g\n"
    );
}

#[test]
fn what_cannot_be_demanded_is_refused() {
    let error = |template, choice| render(&model(template), &prompt(choice)).unwrap_err();
    let foreign = error(HERMES, ToolChoice::Named("h".into()));
    assert!(matches!(
        foreign,
        InferenceError::InvalidRequest { param: Some(param), .. } if param == "tool_choice"
    ));
    // It might speak to the user.
    let unsure = error(FUNCTIONARY, ToolChoice::Required);
    assert!(matches!(
        unsure,
        InferenceError::Unsupported { param, .. } if param == "tool_choice"
    ));
}

#[test]
fn the_output_goes_on_from_there() {
    let model = model(HERMES);
    let run = |choice, output| run(&model, &prompt(choice), output, FinishReason::Stop);
    let named = ToolChoice::Named("g".into());
    let called = run(named.clone(), " {\"a\": 1}}\n</tool_call>");
    assert_eq!(called.unwrap(), "g({\"a\": 1}) ToolCalls");
    let called = run(
        ToolChoice::Required,
        " \"f\", \"arguments\": {}}</tool_call>",
    );
    assert_eq!(called.unwrap(), "f({}) ToolCalls");
    for (choice, output) in [
        (named.clone(), " no"),
        (named, ""),
        (ToolChoice::Required, " I will not"),
    ] {
        let (text, error) = run(choice, output).unwrap_err();
        assert_eq!(text, output, "the beginning is not the model's text");
        assert!(
            matches!(error, InferenceError::InvalidOutput { .. }),
            "{error}"
        );
    }
}

#[test]
fn a_call_that_was_cut_off_is_no_mistake() {
    let model = model(HERMES);
    let chat = prompt(ToolChoice::Required);
    let cut = |output| run(&model, &chat, output, FinishReason::Length).unwrap();
    assert_eq!(cut(" \"f\", \"arguments\": {\"a"), "f({\"a) Length");
    assert_eq!(cut(" \"f"), " \"f Length");
}

/// Whatever a format begins, its own reader goes on from.
#[test]
fn every_format_reads_on_from_what_it_begins() {
    let tools = Tools::new([tool("f", json!({}), false)]);
    let mut begun_by = 0;
    for format in FORMATS
        .iter()
        .filter(|format| format.kind() != Kind::Reasoning)
    {
        let Some(begun) = format.begin_call(Some("f")) else {
            panic!("{} cannot begin a call", format.name());
        };
        let opened = format.opened_by("<|start|>assistant>>>").map(|_| ">>>");
        let opened = match format.name() {
            "harmony" => "<|start|>assistant".to_owned() + &begun,
            _ => opened.unwrap_or_default().to_owned() + &begun,
        };
        // What follows depends on how arguments are written.
        let rest = match format.name() {
            "qwen3_coder" | "seed_oss" | "minimax_m2" | "deepseek_v32" | "deepseek_v4" | "glm"
            | "longcat" => format.close().unwrap(),
            "function_gemma" | "gemma4" => "}",
            "lfm2" | "pythonic" => ")]",
            _ => "{}",
        };
        let mut parser = OutputParser::new(&[*format], tools.clone(), &opened);
        let mut spans = parser.push(rest);
        spans.extend(parser.finish());
        let called: Vec<String> = spans
            .iter()
            .filter(|span| !matches!(&span.piece, Piece::Text(text) if text.is_empty()))
            .map(|span| format!("{:?}", span.piece))
            .collect();
        assert!(
            called.len() == 3
                && called[0].contains("name: \"f\"")
                && called[1].contains("Arguments(\"{}\")"),
            "{}: {opened:?} {called:?}",
            format.name()
        );
        let raw: usize = spans.iter().map(|span| span.raw_len).sum();
        assert_eq!(raw, rest.len(), "{}", format.name());
        begun_by += 1;
    }
    assert!(begun_by > 20);
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
