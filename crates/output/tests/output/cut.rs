//! Outputs that a limit cuts, at each place: what comes is the beginning of what would have come.

use macmlx_output::{CallPart, Ending, OutputParser, Piece, Span, Tools, formats::Kind};
use serde_json::{Value, json};

use crate::cases::{cases, formats, joined, tools};

/// An output that is cut behind `text`, which comes by character.
fn cut(names: &Value, tools: Tools, opened: &str, text: &str) -> Vec<Span> {
    let mut parser = OutputParser::new(&formats(names), tools, opened);
    let mut spans: Vec<Span> = text
        .chars()
        .flat_map(|character| parser.push(&character.to_string()))
        .collect();
    spans.extend(parser.finish(Ending::Cut));
    let raw: usize = spans.iter().map(|span| span.raw_len).sum();
    assert_eq!(raw, text.len(), "{names} {text:?}: {spans:?}");
    spans
}

fn shown(names: &Value, tools: Tools, text: &str) -> Value {
    joined(&cut(names, tools, "", text))
}

/// Whether pieces are the first ones of others, the last of them perhaps only in part.
fn begins(pieces: &Value, whole: &Value) -> bool {
    let (pieces, whole) = (pieces.as_array().unwrap(), whole.as_array().unwrap());
    let Some((last, before)) = pieces.split_last() else {
        return true;
    };
    let text = |piece: &Value, kind: &str| piece[kind].as_str().map(str::to_owned);
    whole.starts_with(before)
        && whole.get(before.len()).is_some_and(|of| {
            let is_text = ["text", "reasoning"].iter().any(|kind| {
                let (part, of) = (text(last, kind), text(of, kind));
                part.is_some_and(|part| of.is_some_and(|of| of.starts_with(&part)))
            });
            let (call, of) = (&last["call"], &of["call"]);
            let is_call = call.is_array()
                && call[0] == of[0]
                && of[1]
                    .as_str()
                    .unwrap()
                    .starts_with(call[1].as_str().unwrap());
            is_text || is_call
        })
}

#[test]
fn what_comes_of_a_cut_output_is_the_beginning_of_the_whole() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (text, names) = (case["text"].as_str().unwrap(), &case["formats"]);
        let opened = case["opened"].as_str().unwrap_or_default();
        for (at, _) in text.char_indices() {
            let found = joined(&cut(names, tools(), opened, &text[..at]));
            // Without a format of calls, what looks like a marker may be text.
            let held = found
                .as_array()
                .unwrap()
                .last()
                .and_then(|last| last["text"].as_str());
            let is_text = formats(names)
                .iter()
                .all(|format| format.kind() == Kind::Reasoning)
                && held.is_some_and(|held| text[..at].ends_with(held));
            if !begins(&found, &case["pieces"]) && !is_text {
                wrong.push(format!(
                    "{}\n  {:?}\n  {found}\n  {}",
                    case["name"],
                    &text[..at],
                    case["pieces"]
                ));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_call_ends_where_its_arguments_are_whole() {
    for case in cases() {
        let (text, names) = (case["text"].as_str().unwrap(), &case["formats"]);
        let opened = case["opened"].as_str().unwrap_or_default();
        for (at, _) in text.char_indices() {
            let mut parser = OutputParser::new(&formats(names), tools(), opened);
            let mut open: Option<String> = None;
            let before = parser.push(&text[..at]);
            for span in before {
                note(&span.piece, &mut open);
            }
            let was_open = open.is_some();
            for span in parser.finish(Ending::Cut) {
                if was_open && span.piece == Piece::ToolCall(CallPart::End) {
                    let arguments = open.clone().unwrap_or_default();
                    let read = macmlx_json::read_object(&arguments);
                    assert!(read.is_ok(), "{} {:?}", case["name"], &text[..at]);
                }
                note(&span.piece, &mut open);
            }
        }
    }
}

/// Keeps the arguments of the call that is open.
fn note(piece: &Piece, open: &mut Option<String>) {
    match piece {
        Piece::ToolCall(CallPart::Start { .. }) => *open = Some(String::new()),
        Piece::ToolCall(CallPart::Arguments(text)) => open.get_or_insert_default().push_str(text),
        Piece::ToolCall(CallPart::End) => *open = None,
        Piece::Text(_) | Piece::Reasoning(_) => {}
    }
}

#[test]
fn text_that_no_call_can_begin_with_is_given() {
    let without = Tools::default;
    for (names, tools, text, pieces) in [
        // Nothing to call.
        (json!(["think"]), without(), "a <", json!([{"text": "a <"}])),
        (
            json!(["think", "hermes"]),
            without(),
            "a <tool",
            json!([{"text": "a <tool"}]),
        ),
        (json!(["hermes"]), without(), "{", json!([{"text": "{"}])),
        (json!(["pythonic"]), without(), "[", json!([{"text": "["}])),
        (
            json!(["harmony"]),
            without(),
            "<|channel|>final<|message|>a <",
            json!([{"text": "a <"}]),
        ),
        // Not a word of the format's.
        (
            json!(["hermes"]),
            tools(),
            "a < b",
            json!([{"text": "a < b"}]),
        ),
        (json!(["hermes"]), tools(), "a [", json!([{"text": "a ["}])),
        (json!(["pythonic"]), tools(), "[x", json!([{"text": "[x"}])),
        // No tool of such a name.
        (
            json!(["llama3_json"]),
            tools(),
            r#"{"name": "Zo"#,
            json!([{"text": r#"{"name": "Zo"#}]),
        ),
    ] {
        assert_eq!(shown(&names, tools, text), pieces, "{names} {text:?}");
    }
}

#[test]
fn what_may_begin_a_call_or_reasoning_is_left_out() {
    for (names, text, pieces) in [
        (json!(["hermes"]), "a <", json!([{"text": "a "}])),
        (
            json!(["hermes"]),
            "a <tool_call>\n{\"name\": \"f\", \"arguments",
            json!([{"text": "a "}]),
        ),
        (json!(["llama3_json"]), r#"{"name": "f"#, json!([])),
        (json!(["pythonic"]), "[", json!([])),
        (json!(["think"]), "<thi", json!([])),
        (
            json!(["think"]),
            "<think>Hm</th",
            json!([{"reasoning": "Hm"}]),
        ),
        (json!(["harmony"]), "<|channel|>comm", json!([])),
    ] {
        assert_eq!(shown(&names, tools(), text), pieces, "{names} {text:?}");
    }
}

#[test]
fn a_stop_sequence_that_closes_a_call_ends_it() {
    let calls = |name: &str, text: &str, stop: &str| {
        let mut parser = OutputParser::new(&formats(&json!([name])), tools(), "");
        let mut spans = parser.push(text);
        spans.extend(parser.stop(stop));
        spans.extend(parser.finish(Ending::Cut));
        let ends = spans
            .iter()
            .any(|span| span.piece == Piece::ToolCall(CallPart::End));
        (joined(&spans), ends)
    };
    let glm = "<tool_call>t\n<arg_key>i</arg_key>\n<arg_value>1</arg_value>\n";
    let whole = json!([{"call": ["t", "{\"i\": 1}"]}]);
    assert_eq!(calls("glm", glm, "</tool_call>"), (whole, true));
    let part = json!([{"call": ["t", "{\"i\": 1"]}]);
    assert_eq!(calls("glm", glm, "<|user|>"), (part, false));
    let head = "<tool_call>{\"name\": \"f\"";
    assert_eq!(calls("hermes", head, "</tool_call>"), (json!([]), false));
}
