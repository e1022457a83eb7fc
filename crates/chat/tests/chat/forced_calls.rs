//! Calls the request demands and reasoning before them.

use std::fs;

use macmlx_chat::{ChatModel, ChoiceOutput};
use macmlx_inference::{
    ChatPrompt, FinishReason, GenerationEvent, InferenceError, Message, ReasoningOptions, Role,
    StopConditions, ToolCallPart, ToolChoice, ToolDefinition,
};
use macmlx_output::{
    Ending, OutputParser, Piece, Tools,
    formats::{FORMATS, Kind},
};
use serde_json::json;

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

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: None,
        parameters: json!({}),
        strict: true,
    }
}

fn prompt(tool_choice: ToolChoice) -> ChatPrompt {
    ChatPrompt {
        messages: vec![Message::text(Role::User, "go")],
        tools: vec![tool("f"), tool("g")],
        tool_choice,
        ..ChatPrompt::default()
    }
}

fn render(model: &ChatModel, chat: &ChatPrompt) -> Result<macmlx_chat::Rendered, InferenceError> {
    model.render(chat, &ReasoningOptions::default())
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

/// The grammar has made sure that they are right, so their start can be sent at once.
#[test]
fn arguments_of_strict_tools_come_as_they_are_written() {
    let model = model(HERMES);
    let rendered = render(&model, &prompt(ToolChoice::Auto)).unwrap();
    let mut choice =
        ChoiceOutput::new(0, model.output(&rendered, &StopConditions::default(), None));
    let mut arguments = String::new();
    let mut push = |text: &str| {
        for id in model.tokenizer().encode(text, false).unwrap() {
            choice.push(id, None, |event| {
                if let GenerationEvent::ToolCall {
                    part: ToolCallPart::Arguments(more),
                    ..
                } = event
                {
                    arguments.push_str(&more);
                }
            });
        }
        arguments.clone()
    };
    assert_eq!(
        push("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\""),
        "{\"a\""
    );
    assert_eq!(push(": 1"), "{\"a\": 1");
}

/// Functionary's template begins a message to whomever, also where there is nothing to call.
#[test]
fn the_recipient_of_a_message_is_no_text() {
    let template = "{{ messages[0].content }}{{ tools }}{{ '>>>all' if false }}>>>";
    let model = model(template);
    let chat = ChatPrompt {
        tools: Vec::new(),
        ..prompt(ToolChoice::Auto)
    };
    let rendered = render(&model, &chat).unwrap();
    let mut stream = model.output(&rendered, &StopConditions::default(), None);
    let ids = model.tokenizer().encode("all\nHello", false).unwrap();
    let mut pieces: Vec<_> = ids.iter().flat_map(|id| stream.push(*id)).collect();
    pieces.extend(stream.finish(FinishReason::Stop).pieces);
    let text: String = pieces
        .into_iter()
        .map(|piece| match piece.piece {
            Piece::Text(text) => text,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(text, "Hello");
}

/// What the engine writes at the end of a reasoning budget is in the grammar of a call.
#[test]
fn every_format_calls_after_its_reasoning_is_closed() {
    let mut closed = 0;
    for format in FORMATS
        .iter()
        .filter(|format| format.kind() != Kind::ToolCalls)
    {
        let (end, open, call, tools) = match format.name() {
            "harmony" => (
                "<|start|>assistant",
                "<|channel|>analysis<|message|>",
                "f<|message|>{}",
                "harmony",
            ),
            _ => (
                "",
                format.open()[0],
                "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
                "hermes",
            ),
        };
        let folder = tokenizers::byte_level();
        let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        let template = format!("{{{{ messages[0].content }}}}{{{{ tools }}}}{end}");
        write("chat_template.jinja", template);
        let formats = json!({"tool_format": tools, "reasoning_format": format.name()});
        write("macmlx.json", formats.to_string());
        let model = ChatModel::load(folder.path(), "org/model").unwrap();
        let rendered = render(&model, &prompt(ToolChoice::Required)).unwrap();
        let mut constraint = model.constraint(&rendered, None).unwrap().unwrap();
        let stream = model.output(&rendered, &StopConditions::default(), None);
        let output = format!("{open}Hm{}{call}", stream.reasoning_close().unwrap());
        for id in model.tokenizer().encode(&output, false).unwrap() {
            let allowed = constraint.allowed().unwrap()[id as usize];
            assert!(allowed, "{}: {output}", format.name());
            constraint.advance(id).unwrap();
        }
        closed += 1;
    }
    assert!(closed > 10);
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
        spans.extend(parser.finish(Ending::Whole));
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
