//! Output cases (`tests/cases/*.json`), each whole, character by character and at every two-way
//! split.

use std::{fs, path::Path};

use macmlx_inference::ToolDefinition;
use macmlx_output::{
    CallPart, Ending, OutputParser, Piece, Span, Tools,
    formats::{FORMATS, Format, Kind},
};
use serde_json::{Value, json};

pub(crate) fn formats(names: &Value) -> Vec<&'static dyn Format> {
    names
        .as_array()
        .unwrap()
        .iter()
        .map(|name| {
            // A name may be that of reasoning and of calls; `:calls` asks for these.
            let name = name.as_str().unwrap();
            let (name, calls) = match name.strip_suffix(":calls") {
                Some(name) => (name, true),
                None => (name, false),
            };
            let mut alike = FORMATS.iter().filter(|format| format.name() == name);
            let found = alike.find(|format| !calls || format.kind() != Kind::Reasoning);
            *found.unwrap_or_else(|| panic!("no format {name}"))
        })
        .collect()
}

/// What is offered in all cases.
pub(crate) fn tools() -> Tools {
    let tool = |name: &str, parameters| ToolDefinition {
        name: name.into(),
        description: None,
        parameters,
        strict: false,
    };
    let typed = json!({"type": "object", "properties": {
        "s": {"type": "string"}, "i": {"type": "integer"}, "b": {"type": "boolean"},
        "o": {"type": "object"}, "l": {"type": "array"},
    }});
    Tools::new([
        tool("f", json!({})),
        tool("g", json!({})),
        tool("w", json!({})),
        tool("t", typed),
    ])
}

/// Neighbours of a kind joined, empty pieces left out.
pub(crate) fn joined(spans: &[Span]) -> Value {
    let mut out: Vec<(&str, Value)> = Vec::new();
    for span in spans {
        match (&span.piece, out.last_mut()) {
            (Piece::Text(text) | Piece::Reasoning(text), _) if text.is_empty() => {}
            (Piece::Text(more), Some(("text", Value::String(text))))
            | (Piece::Reasoning(more), Some(("reasoning", Value::String(text)))) => {
                text.push_str(more);
            }
            (Piece::Text(text), _) => out.push(("text", text.as_str().into())),
            (Piece::Reasoning(text), _) => out.push(("reasoning", text.as_str().into())),
            (Piece::ToolCall(CallPart::Start { name }), _) => {
                out.push(("call", json!([name, ""])));
            }
            (Piece::ToolCall(CallPart::Arguments(more)), Some(("call", call))) => {
                let arguments = call[1].as_str().unwrap().to_owned() + more;
                call[1] = arguments.into();
            }
            (Piece::ToolCall(CallPart::Arguments(more)), last) => {
                panic!("arguments {more:?} behind {last:?}");
            }
            (Piece::ToolCall(CallPart::End), last) => {
                assert!(matches!(last, Some(("call", _))), "end behind {last:?}");
            }
        }
    }
    out.into_iter()
        .map(|(kind, value)| json!({kind: value}))
        .collect()
}

pub(crate) fn parse(case: &Value, pieces: &[&str]) -> Value {
    let mut parser = OutputParser::new(
        &formats(&case["formats"]),
        tools(),
        case["opened"].as_str().unwrap_or_default(),
    );
    let mut spans: Vec<Span> = pieces.iter().flat_map(|piece| parser.push(piece)).collect();
    spans.extend(parser.finish(Ending::Whole));
    let raw: usize = spans.iter().map(|span| span.raw_len).sum();
    assert_eq!(raw, pieces.concat().len(), "{}: {spans:?}", case["name"]);
    joined(&spans)
}

pub(crate) fn cases() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        cases.extend(serde_json::from_str::<Vec<Value>>(&text).unwrap());
    }
    cases
}

/// All ways a text is fed: whole, by character, and cut in two at each place.
pub(crate) fn splits(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let by_character = text
        .char_indices()
        .map(|(at, c)| &text[at..at + c.len_utf8()])
        .collect();
    let in_two = text
        .char_indices()
        .map(|(at, _)| vec![&text[..at], &text[at..]]);
    [vec![text], by_character].into_iter().chain(in_two)
}

#[test]
fn cases_give_the_same_at_every_split() {
    let mut wrong = Vec::new();
    for case in cases() {
        let text = case["text"].as_str().unwrap();
        let expected = &case["pieces"];
        let found = splits(text)
            .map(|pieces| (parse(&case, &pieces), pieces))
            .find(|(found, _)| found != expected);
        if let Some((found, pieces)) = found {
            let name = &case["name"];
            wrong.push(format!("{name}\n  {pieces:?}\n  {found}\n  {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_format_has_cases() {
    let cases = cases();
    for format in FORMATS {
        let is_used = |case: &Value| {
            let used = formats(&case["formats"]);
            used.iter()
                .any(|used| used.name() == format.name() && used.kind() == format.kind())
        };
        assert!(cases.iter().any(is_used), "{format:?}");
    }
}

#[test]
fn only_what_could_become_a_marker_is_held_back() {
    let mut parser = OutputParser::new(&formats(&json!(["think", "hermes"])), tools(), "");
    let mut push = |text: &str| joined(&parser.push(text));
    assert_eq!(push("Use a < b"), json!([{"text": "Use a < b"}]));
    assert_eq!(push("and <to"), json!([{"text": "and "}]));
    assert_eq!(push("day>"), json!([{"text": "<today>"}]));
    assert_eq!(push("<think>Hm"), json!([{"reasoning": "Hm"}]));
    assert_eq!(push("m. </thi"), json!([{"reasoning": "m."}]));
    assert_eq!(push("s>"), json!([{"reasoning": " </this>"}]));
}

/// A caller sees arguments before they are complete.
#[test]
fn arguments_come_as_they_are_written() {
    let so_far = |format: &str, text: &str| {
        let mut parser = OutputParser::new(&formats(&json!([format])), tools(), "");
        joined(&parser.push(text))
    };
    let cases = [
        (
            "hermes",
            "<tool_call>\n{\"name\": \"f\", \"arguments\": ",
            "",
        ),
        (
            "hermes",
            "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"on",
            "{\"a\": \"on",
        ),
        (
            "llama3_json",
            "{\"name\": \"f\", \"parameters\": {\"a",
            "{\"a",
        ),
        ("mistral_args", "[TOOL_CALLS]f[ARGS]{\"a\": 1", "{\"a\": 1"),
        (
            "kimi_k2",
            "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\"",
            "{\"a\"",
        ),
        (
            "harmony",
            "<|channel|>commentary to=functions.f<|message|>{\"a\": [",
            "{\"a\": [",
        ),
        (
            "qwen3_coder",
            "<function=t>\n<parameter=s>\nline\nmore </par",
            "{\"s\": \"line\\nmore ",
        ),
        ("qwen3_coder", "<function=t>\n<parameter=i>\n1", "{\"i\": "),
        (
            "glm",
            "<tool_call>t\n<arg_key>s</arg_key>\n<arg_value>a \"b",
            "{\"s\": \"a \\\"b",
        ),
        ("pythonic", "[t(i=1, s='x", "{\"i\": 1, \"s\": "),
    ];
    for (format, text, arguments) in cases {
        let found = so_far(format, text);
        let call = &found[0]["call"];
        if arguments.is_empty() {
            assert_eq!(found, json!([]), "{format}");
        } else {
            assert_eq!(call[1], arguments, "{format} {text}");
        }
    }
}
