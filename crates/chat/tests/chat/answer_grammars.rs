//! Answers held to a schema beside reasoning, calls and the markers around them: whatever may be
//! written is read as what the schema allows.

use macmlx_inference::{
    ChatPrompt, Grammar, Language, Message, ReasoningOptions, Role, ToolChoice, ToolDefinition,
};
use macmlx_output::{
    Ending, OutputParser, Piece, Tools,
    formats::{FORMATS, Format, Kind},
};
use serde_json::{Value, json};

use crate::walks::{self, Dice, MARKERS, likes, read, walk};

/// Number of walks for each format, vocabulary and set of tools.
const WALKS: usize = 6;

fn of_kind(kind: Kind) -> Vec<&'static dyn Format> {
    let formats = FORMATS.iter().copied();
    formats.filter(|format| format.kind() == kind).collect()
}

fn check(
    reasoning: Option<&'static dyn Format>,
    calls: Option<&'static dyn Format>,
    end: &str,
    dice: &mut Dice,
    wrong: &mut Vec<String>,
) {
    let schema = json!({
        "type": "object", "required": ["s"], "additionalProperties": false,
        "properties": {"s": {"type": "string"}, "n": {"type": ["integer", "null"]}},
    });
    let validator = jsonschema::validator_for(&schema).unwrap();
    let answer = Grammar {
        language: Language::JsonSchema(schema.clone()),
        param: "response_format".into(),
    };
    let formats: Vec<&dyn Format> = reasoning.into_iter().chain(calls).collect();
    let likes = likes(&formats);
    let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
    for markers in MARKERS {
        let model = walks::model(reasoning, calls, markers, end);
        let tool = ToolDefinition {
            name: "f".into(),
            description: None,
            parameters: schema.clone(),
            strict: true,
        };
        let chat = ChatPrompt {
            messages: vec![Message::text(Role::User, "go")],
            tools: calls.map(|_| tool).into_iter().collect(),
            tool_choice: ToolChoice::Auto,
            ..ChatPrompt::default()
        };
        let rendered = model.render(&chat, &ReasoningOptions::default()).unwrap();
        let start = model.constraint(&rendered, Some(&answer)).unwrap().unwrap();
        let mut answered = 0;
        for _ in 0..WALKS {
            let Some(ids) = walk(&model, start.clone(), &likes, dice) else {
                continue;
            };
            let read = read(&model, &chat, Some(&answer), &ids);
            let is_right = |json: &str| {
                serde_json::from_str::<Value>(json).is_ok_and(|value| validator.is_valid(&value))
            };
            let are_right = read
                .calls
                .iter()
                .all(|(name, arguments)| name == "f" && is_right(arguments));
            // Word for word.
            let output = model.tokenizer().detokenize(&ids);
            let is_answer =
                is_right(&read.text) && read.calls.is_empty() && output.contains(&read.text);
            let is_call = read.text.trim().is_empty() && !read.calls.is_empty();
            if !(are_right && (is_answer || is_call)) {
                wrong.push(format!(
                    "{names:?} {markers:?}: {output:?} is read as {read:?}"
                ));
            }
            answered += 1;
        }
        assert!(answered > 0, "{names:?} {markers:?}");
    }
}

#[test]
fn behind_reasoning_of_every_format() {
    let mut dice = Dice(0x0123_4567_89AB_CDEF);
    let mut wrong = Vec::new();
    for format in of_kind(Kind::Reasoning) {
        check(Some(format), None, "", &mut dice, &mut wrong);
        check(Some(format), None, format.open()[0], &mut dice, &mut wrong);
    }
    for format in of_kind(Kind::Messages) {
        check(
            Some(format),
            None,
            "<|start|>assistant",
            &mut dice,
            &mut wrong,
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn beside_calls_of_every_format() {
    let mut dice = Dice(0x1357_9BDF_0246_8ACE);
    let mut wrong = Vec::new();
    let think = of_kind(Kind::Reasoning)
        .into_iter()
        .find(|format| format.name() == "think");
    for format in of_kind(Kind::ToolCalls) {
        let end = if format.name() == "functionary_v32" {
            ">>>"
        } else {
            ""
        };
        let think = think.filter(|_| end.is_empty());
        check(think, Some(format), end, &mut dice, &mut wrong);
    }
    for format in of_kind(Kind::Messages) {
        let end = "<|start|>assistant";
        check(Some(format), Some(format), end, &mut dice, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Markers around an answer are left out, those in it are not, wherever the text is cut.
#[test]
fn the_markers_around_an_answer() {
    let json = r#"{"a": "</answer> <think>x</think> <|end|> </"}"#;
    for (format, opened, before, after) in [
        (
            "hunyuan",
            "",
            "<think>Hm</think>\n<answer>\n",
            "</answer>\n",
        ),
        ("hunyuan", "<think>", "Hm</think>", ""),
        (
            "harmony",
            "<|start|>assistant",
            "<|channel|>final<|message|>",
            "<|end|>",
        ),
        ("think", "", "", ""),
    ] {
        let formats = FORMATS.iter().copied();
        let formats: Vec<_> = formats.filter(|other| other.name() == format).collect();
        let output = format!("{before}{json}{after}");
        for (at, _) in output.char_indices() {
            let mut parser = OutputParser::new(&formats[..1], Tools::default(), opened).in_form();
            let mut spans = parser.push(&output[..at]);
            spans.extend(parser.push(&output[at..]));
            spans.extend(parser.finish(Ending::Whole));
            let raw: usize = spans.iter().map(|span| span.raw_len).sum();
            let text: String = spans
                .into_iter()
                .map(|span| match span.piece {
                    Piece::Text(text) => text,
                    Piece::Reasoning(_) | Piece::ToolCall(_) => String::new(),
                })
                .collect();
            assert_eq!(
                (text.as_str(), raw),
                (json, output.len()),
                "{format} at {at}"
            );
        }
    }
}
