//! Random texts: any mixture of markers and words, and calls written by each format's rules, with a
//! fixed generator so that failures repeat.

use macmlx_output::{
    CallPart, Ending, OutputParser, Piece, Span,
    formats::{FORMATS, Format, Kind},
};
use serde_json::{Map, Value, json};

use crate::cases::{joined, splits, tools};

/// Xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

fn parse(formats: &[&'static dyn Format], opened: &str, pieces: &[&str]) -> Vec<Span> {
    let mut parser = OutputParser::new(formats, tools(), opened);
    let mut spans: Vec<Span> = pieces.iter().flat_map(|piece| parser.push(piece)).collect();
    spans.extend(parser.finish(Ending::Whole));
    spans
}

/// Every start has its end, with nothing but arguments between them.
fn check_calls(spans: &[Span], of: &str) {
    let mut in_call = false;
    for span in spans {
        match &span.piece {
            Piece::ToolCall(CallPart::Start { name }) => {
                assert!(!in_call && !name.is_empty(), "{of}");
                in_call = true;
            }
            Piece::ToolCall(CallPart::Arguments(_)) => assert!(in_call, "{of}"),
            Piece::ToolCall(CallPart::End) => assert!(std::mem::take(&mut in_call), "{of}"),
            Piece::Text(text) | Piece::Reasoning(text) => {
                assert!(!in_call || text.is_empty() && span.raw_len == 0, "{of}");
            }
        }
    }
    assert!(!in_call, "{of}");
}

/// All that the pieces show.
fn shown(spans: &[Span]) -> String {
    let text = |span: &Span| match &span.piece {
        Piece::Text(text)
        | Piece::Reasoning(text)
        | Piece::ToolCall(CallPart::Arguments(text) | CallPart::Start { name: text }) => {
            text.clone()
        }
        Piece::ToolCall(CallPart::End) => String::new(),
    };
    spans.iter().map(text).collect()
}

/// Every text gives the same pieces at every split, accounts for all bytes and loses no word.
#[test]
fn any_text_of_any_format() {
    const PARTS: [&str; 22] = [
        r#"{"name": "f", "arguments": {"a": "é"}}"#,
        r#"{"name""#,
        r#": "f"}"#,
        r#"[{"name": "f"}]"#,
        r#"{"a": 1}"#,
        "f",
        "functions.f:0",
        "[f(a=1)]",
        "call:f{a:1}",
        "\"",
        "```json",
        "\n ",
        " ",
        ">",
        "{",
        "}",
        "]",
        "analysis",
        "all\n",
        "=",
        "'",
        "👋",
    ];
    let reasoning = FORMATS
        .iter()
        .find(|format| format.name() == "think")
        .unwrap();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for format in FORMATS {
        let mut formats = vec![*format];
        if format.kind() == Kind::ToolCalls {
            formats.insert(0, *reasoning);
        }
        let markers: Vec<&str> = formats
            .iter()
            .flat_map(|format| {
                let open = format.open().iter().chain(format.silent()).copied();
                let inner = format.inner_markers().into_iter();
                open.chain(format.close()).chain(inner).collect::<Vec<_>>()
            })
            .collect();
        for _ in 0..30 {
            let mut words = 0;
            let mut text = String::new();
            for _ in 0..=random.below(9) {
                match random.below(6) {
                    0 | 1 => text.push_str(random.pick(&markers)),
                    2 => {
                        let marker = random.pick(&markers);
                        let cut = random.below(marker.len());
                        text.push_str(&marker[..marker.floor_char_boundary(cut)]);
                    }
                    3 => {
                        words += 1;
                        text.extend(["w", &words.to_string(), "w"]);
                    }
                    _ => text.push_str(random.pick(&PARTS)),
                }
            }
            let opened = match random.below(3) {
                0 => formats
                    .iter()
                    .find_map(|format| format.opened_by("<|start|>assistant")),
                1 => formats
                    .iter()
                    .find_map(|format| format.opened_by("<think>")),
                _ => None,
            };
            let opened = opened.unwrap_or_default();
            let of = format!("{} {opened:?} {text:?}", format.name());
            let whole = parse(&formats, opened, &[&text]);
            for pieces in splits(&text) {
                let spans = parse(&formats, opened, &pieces);
                assert_eq!(joined(&spans), joined(&whole), "{of} {pieces:?}");
                let raw: usize = spans.iter().map(|span| span.raw_len).sum();
                assert_eq!(raw, text.len(), "{of} {pieces:?}");
                check_calls(&spans, &of);
            }
            let shown = shown(&whole);
            for word in 1..=words {
                assert!(shown.contains(&format!("w{word}w")), "{of} {whole:?}");
            }
        }
    }
}

/// Calls as a format's models write them, in one block or one after the other.
fn written(format: &str, calls: &[(&str, Map<String, Value>)]) -> String {
    let each = |between: &str, write: &dyn Fn(&str, &Map<String, Value>) -> String| {
        let calls: Vec<String> = calls.iter().map(|(name, map)| write(name, map)).collect();
        calls.join(between)
    };
    let json = |map: &Map<String, Value>| serde_json::to_string(map).unwrap();
    let objects = |name: &'static str, arguments: &'static str| {
        move |tool: &str, map: &Map<String, Value>| json!({name: tool, arguments: map}).to_string()
    };
    let bare = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let tags = |open: &str, close: &str, key: &str, value_close: &str, line: &str| {
        each("\n", &|name, map| {
            let values: Vec<String> = map
                .iter()
                .map(|(k, v)| {
                    let key = key.replace('K', k);
                    format!("{key}{line}{}{line}{value_close}\n", bare(v))
                })
                .collect();
            format!("{}\n{}{close}", open.replace('N', name), values.concat())
        })
    };
    let wrap = |open: &str, body: String, close: &str| format!("{open}{body}{close}");
    match format {
        "hermes" | "generic" => each("\n", &|name, map| {
            wrap(
                "<tool_call>\n",
                objects("name", "arguments")(name, map),
                "\n</tool_call>",
            )
        }),
        "llama3_json" => each("; ", &objects("name", "parameters")),
        "plain_json" => wrap(
            "```json\n[",
            each(",\n", &objects("name", "arguments")),
            "]\n```",
        ),
        "granite" => wrap(
            "<|tool_call|>[",
            each(", ", &objects("name", "arguments")),
            "]",
        ),
        "nemotron" => wrap(
            "<TOOLCALL>[",
            each(", ", &objects("name", "arguments")),
            "]</TOOLCALL>",
        ),
        "deepseek_v4" => written("deepseek_v32", calls).replace("function_calls>", "tool_calls>"),
        "phi4" => wrap(
            "<|tool_call|>[",
            each(", ", &objects("name", "arguments")),
            "]<|/tool_call|>",
        ),
        "functools" => wrap("functools[", each(", ", &objects("name", "arguments")), "]"),
        "command_r" => wrap(
            "Action: ```json\n[",
            each(",\n", &objects("tool_name", "parameters")),
            "]```",
        ),
        "command_r7b" => wrap(
            "<|START_ACTION|>[\n",
            each(",\n", &objects("tool_name", "parameters")),
            "\n]<|END_ACTION|>",
        ),
        "mistral" => wrap(
            "[TOOL_CALLS] [",
            each(", ", &objects("name", "arguments")),
            "]",
        ),
        "mistral_args" => each("", &|name, map| {
            format!("[TOOL_CALLS]{name}[ARGS]{}", json(map))
        }),
        "functionary_v31" => each("", &|name, map| {
            format!("<function={name}>{}</function>", json(map))
        }),
        "functionary_v32" => each("", &|name, map| format!(">>>{name}\n{}", json(map))),
        "deepseek_v3" => wrap(
            "<｜tool▁calls▁begin｜>",
            each("\n", &|name, map| {
                format!(
                    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{}\n```<｜tool▁call▁end｜>",
                    json(map)
                )
            }),
            "<｜tool▁calls▁end｜>",
        ),
        "deepseek_v31" => wrap(
            "<｜tool▁calls▁begin｜>",
            each("", &|name, map| {
                format!(
                    "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
                    json(map)
                )
            }),
            "<｜tool▁calls▁end｜>",
        ),
        "kimi_k2" => wrap(
            "<|tool_calls_section_begin|>",
            each("", &|name, map| {
                format!(
                    "<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
                    json(map)
                )
            }),
            "<|tool_calls_section_end|>",
        ),
        "harmony" => each("", &|name, map| {
            format!(
                "<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{}<|call|>",
                json(map)
            )
        }),
        "qwen3_coder" => each("\n", &|name, map| {
            let body = written("tags", &[(name, map.clone())]);
            format!("<tool_call>\n{body}\n</tool_call>")
        }),
        "tags" => tags(
            "<function=N>",
            "</function>",
            "<parameter=K>",
            "</parameter>",
            "\n",
        ),
        "seed_oss" => wrap(
            "<seed:tool_call>\n",
            written("tags", calls),
            "\n</seed:tool_call>",
        ),
        "minimax_m2" => wrap(
            "<minimax:tool_call>\n",
            tags(
                "<invoke name=\"N\">",
                "</invoke>",
                "<parameter name=\"K\">",
                "</parameter>",
                "\n",
            ),
            "\n</minimax:tool_call>",
        ),
        "deepseek_v32" => wrap(
            "<｜DSML｜function_calls>\n",
            each("\n", &|name, map| {
                let values: Vec<String> = map.iter().map(|(k, v)| format!(
                "<｜DSML｜parameter name=\"{k}\" string=\"{}\">{}</｜DSML｜parameter>\n", v.is_string(), bare(v)
            )).collect();
                format!(
                    "<｜DSML｜invoke name=\"{name}\">\n{}</｜DSML｜invoke>",
                    values.concat()
                )
            }),
            "\n</｜DSML｜function_calls>",
        ),
        "glm" => tags(
            "<tool_call>N",
            "</tool_call>",
            "<arg_key>K</arg_key>\n<arg_value>",
            "</arg_value>",
            "",
        ),
        "longcat" => tags(
            "<longcat_tool_call>N",
            "</longcat_tool_call>",
            "<longcat_arg_key>K</longcat_arg_key>\n<longcat_arg_value>",
            "</longcat_arg_value>",
            "",
        ),
        "pythonic" => wrap("[", each(", ", &|name, map| python(name, map)), "]"),
        "lfm2" => wrap(
            "<|tool_call_start|>[",
            each(", ", &|name, map| python(name, map)),
            "]<|tool_call_end|>",
        ),
        "function_gemma" => each("", &|name, map| {
            format!(
                "<start_function_call>call:{name}{}<end_function_call>",
                gemma(&Value::Object(map.clone()), "<escape>")
            )
        }),
        "gemma4" => each("", &|name, map| {
            format!(
                "<|tool_call>call:{name}{}<tool_call|>",
                gemma(&Value::Object(map.clone()), "<|\"|>")
            )
        }),
        format => panic!("nobody writes {format}"),
    }
}

fn python(name: &str, map: &Map<String, Value>) -> String {
    fn literal(value: &Value) -> String {
        match value {
            Value::Null => "None".into(),
            Value::Bool(true) => "True".into(),
            Value::Bool(false) => "False".into(),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(literal).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Object(map) => {
                let items: Vec<String> = map
                    .iter()
                    .map(|(key, value)| format!("'{key}': {}", literal(value)))
                    .collect();
                format!("{{{}}}", items.join(", "))
            }
            value => value.to_string(),
        }
    }
    let arguments: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{key}={}", literal(value)))
        .collect();
    format!("{name}({})", arguments.join(", "))
}

fn gemma(value: &Value, quote: &str) -> String {
    match value {
        Value::String(text) => format!("{quote}{text}{quote}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| gemma(item, quote)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let items: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", gemma(value, quote)))
                .collect();
            format!("{{{}}}", items.join(","))
        }
        value => value.to_string(),
    }
}

/// Arguments of the typed tool `t`, with texts that look like markup.
fn arguments(random: &mut Random) -> Map<String, Value> {
    const TEXTS: [&str; 9] = [
        "",
        "a \"b\" \\ c",
        "two\nlines\n\n",
        "</tool_call> <tool_call>",
        "{\"name\": \"g\", \"arguments\": {}}",
        "it's [1, 2) é👋",
        "12",
        "<think>no</think> <|x|>",
        "  spaces ",
    ];
    let mut map = Map::new();
    for key in ["s", "i", "b", "o", "l"] {
        if random.below(3) == 0 {
            continue;
        }
        let text = random.pick(&TEXTS);
        let value = match key {
            "s" => json!(text),
            "i" => json!(random.below(2000)),
            "b" => json!(random.below(2) == 0),
            "o" => json!({"k": "v, w", "n": null, "d": {"x": [1.5]}}),
            _ => json!(["a", 2, true]),
        };
        map.insert(key.into(), value);
    }
    map
}

/// Text before, calls, and nothing of the notation left, whatever the arguments hold.
#[test]
fn calls_come_back_as_they_were_written() {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    for format in FORMATS
        .iter()
        .filter(|format| format.kind() != Kind::Reasoning)
    {
        for _ in 0..60 {
            let mut calls: Vec<(&str, Map<String, Value>)> = Vec::new();
            for _ in 0..=random.below(2) {
                match random.below(3) {
                    0 => calls.push(("f", Map::new())),
                    _ => calls.push(("t", arguments(&mut random))),
                }
            }
            let has_lead = !matches!(
                format.name(),
                "llama3_json" | "plain_json" | "pythonic" | "harmony"
            ) && random.below(2) == 0;
            let lead = if has_lead { "Let me see.\n" } else { "" };
            let text = lead.to_owned() + &written(format.name(), &calls);
            let of = format!("{} {text}", format.name());
            for pieces in splits(&text).take(40) {
                let spans = parse(&[*format], "", &pieces);
                check_calls(&spans, &of);
                let found = joined(&spans);
                let mut found = found.as_array().unwrap().iter();
                if has_lead {
                    assert_eq!(found.next(), Some(&json!({"text": lead})), "{of}");
                }
                for (name, map) in &calls {
                    let call = &found.next().unwrap_or_else(|| panic!("{of} {spans:?}"))["call"];
                    assert_eq!(call[0], *name, "{of} {spans:?}");
                    let arguments: Value = serde_json::from_str(call[1].as_str().unwrap())
                        .unwrap_or_else(|error| panic!("{of} {call} {error}"));
                    assert_eq!(arguments, Value::Object(map.clone()), "{of}");
                }
                assert_eq!(found.next(), None, "{of}");
            }
        }
    }
}
