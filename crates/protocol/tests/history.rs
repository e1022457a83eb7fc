//! Conversations as clients trim, number and repeat them: the same history in each dialect's words
//! is the same conversation, or is refused in words that say what to drop.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

use macmlx_inference::{ContentPart, Message, Prompt, Role};
use macmlx_protocol::{
    Body, Context, Endpoint, Error,
    anthropic::messages::Messages,
    ollama::chat::Chat,
    openai::{chat_completions::ChatCompletions, responses::Responses},
};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Dialect {
    Chat,
    Responses,
    Messages,
    Ollama,
}

use Dialect::{Chat as OpenAi, Messages as Anthropic, Ollama, Responses as Items};

const ALL: [Dialect; 4] = [OpenAi, Items, Anthropic, Ollama];

fn messages(dialect: Dialect, turns: &Value) -> Result<Vec<Message>, Error> {
    match dialect {
        OpenAi => translate::<ChatCompletions>("messages", turns),
        Items => translate::<Responses>("input", turns),
        Anthropic => translate::<Messages>("messages", turns),
        Ollama => translate::<Chat>("messages", turns),
    }
}

fn translate<E: Endpoint>(field: &str, turns: &Value) -> Result<Vec<Message>, Error> {
    let context = Context {
        id: String::new(),
        created_unix: 0,
        fingerprint: String::new(),
    };
    let body = json!({"model": "m", field: turns}).to_string();
    let translation = E::translate(E::parse(Body::json(body.as_bytes()))?, context)?;
    match translation.requests.into_iter().next().unwrap().prompt {
        Prompt::Chat(chat) => Ok(chat.messages),
        other => panic!("{other:?}"),
    }
}

/// A conversation in short: one word a turn, its thought in parentheses, its calls in braces.
fn told(messages: &[Message]) -> String {
    let turns: Vec<String> = messages.iter().map(turn).collect();
    turns.join(" ")
}

fn turn(message: &Message) -> String {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let thought = message.reasoning.as_ref().map(|text| format!("({text})"));
    let calls = message
        .tool_calls
        .iter()
        .map(|call| format!("{{{}}}", call.name));
    let of_tool = message.name.as_ref().map(|name| format!("<{name}>"));
    let content = message.content.iter().map(|part| match part {
        ContentPart::Text(text) => text.trim().replace('\n', "|"),
        ContentPart::Image(_) => "[image]".to_owned(),
    });
    role.to_owned()
        + &thought.unwrap_or_default()
        + &of_tool.unwrap_or_default()
        + ":"
        + &content.collect::<String>()
        + &calls.collect::<String>()
}

/// A turn that thinks, says and calls, as each dialect replays it. Calls are `(id, name)`.
fn assistant(dialect: Dialect, text: &str, calls: &[(Option<&str>, &str)]) -> Vec<Value> {
    let with_id = |mut call: Value, field: &str, id: Option<&str>| {
        if let Some(id) = id {
            call[field] = id.into();
        }
        call
    };
    match dialect {
        OpenAi | Ollama => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|(id, name)| {
                    with_id(
                        json!({"function": {"name": name, "arguments": {}}}),
                        "id",
                        *id,
                    )
                })
                .collect();
            vec![json!({"role": "assistant", "content": text, "tool_calls": calls})]
        }
        Anthropic => {
            let mut content = vec![json!({"type": "text", "text": text})];
            content.extend(calls.iter().map(|(id, name)| {
                with_id(
                    json!({"type": "tool_use", "name": name, "input": {}}),
                    "id",
                    *id,
                )
            }));
            vec![json!({"role": "assistant", "content": content})]
        }
        Items => {
            let mut items = Vec::new();
            if !text.is_empty() {
                items.push(json!({"role": "assistant", "content": text}));
            }
            items.extend(calls.iter().map(|(id, name)| {
                let call = json!({"type": "function_call", "name": name, "arguments": "{}"});
                with_id(call, "call_id", *id)
            }));
            items
        }
    }
}

/// Results `(id, text)`, as each dialect replays them.
fn results(dialect: Dialect, results: &[(Option<&str>, &str)]) -> Vec<Value> {
    let result = |(id, text): &(Option<&str>, &str)| {
        let (mut result, field) = match dialect {
            OpenAi | Ollama => (json!({"role": "tool", "content": text}), "tool_call_id"),
            Anthropic => (
                json!({"type": "tool_result", "content": text}),
                "tool_use_id",
            ),
            Items => (
                json!({"type": "function_call_output", "output": text}),
                "call_id",
            ),
        };
        if let Some(id) = id {
            result[field] = (*id).into();
        }
        result
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    match dialect {
        Anthropic => vec![json!({"role": "user", "content": results})],
        OpenAi | Items | Ollama => results,
    }
}

fn user(text: &str) -> Vec<Value> {
    vec![json!({"role": "user", "content": text})]
}

type History = fn(Dialect) -> Vec<Vec<Value>>;

#[test]
fn calls_and_results_find_each_other_however_clients_number_them() {
    let histories: [(&str, History, &str); 9] = [
        (
            "results in another order",
            |d| {
                vec![
                    user("go"),
                    assistant(d, "", &[(Some("a"), "f"), (Some("b"), "g")]),
                    results(d, &[(Some("b"), "2"), (Some("a"), "1")]),
                ]
            },
            "user:go assistant:{f}{g} tool<g>:2 tool<f>:1",
        ),
        (
            "one id in every turn",
            |d| {
                vec![
                    user("go"),
                    assistant(d, "", &[(Some("call_0"), "f")]),
                    results(d, &[(Some("call_0"), "1")]),
                    assistant(d, "", &[(Some("call_0"), "g")]),
                    results(d, &[(Some("call_0"), "2")]),
                ]
            },
            "user:go assistant:{f} tool<f>:1 assistant:{g} tool<g>:2",
        ),
        (
            "one id in every turn, and the first was interrupted",
            |d| {
                vec![
                    user("go"),
                    assistant(d, "", &[(Some("call_0"), "f")]),
                    user("no"),
                    assistant(d, "", &[(Some("call_0"), "g")]),
                    results(d, &[(Some("call_0"), "2")]),
                ]
            },
            "user:go assistant:{f} user:no assistant:{g} tool<g>:2",
        ),
        (
            "one id twice in a turn",
            |d| {
                vec![
                    user("go"),
                    assistant(d, "", &[(Some("0"), "f"), (Some("0"), "g")]),
                    results(d, &[(Some("0"), "1"), (Some("0"), "2")]),
                ]
            },
            "user:go assistant:{f}{g} tool<f>:1 tool<g>:2",
        ),
        (
            "empty ids",
            |d| {
                vec![
                    user("go"),
                    assistant(d, "", &[(Some(""), "f"), (Some(""), "g")]),
                    results(d, &[(Some(""), "1"), (Some(""), "2")]),
                ]
            },
            "user:go assistant:{f}{g} tool<f>:1 tool<g>:2",
        ),
        (
            "no ids",
            |d| {
                vec![
                    user("go"),
                    assistant(d, "", &[(None, "f"), (None, "g")]),
                    results(d, &[(None, "1"), (None, "2")]),
                ]
            },
            "user:go assistant:{f}{g} tool<f>:1 tool<g>:2",
        ),
        (
            "calls without ids, answered with ids of the client's own",
            |d| {
                vec![
                    user("go"),
                    assistant(d, "", &[(None, "f")]),
                    results(d, &[(Some("mine"), "1")]),
                ]
            },
            "user:go assistant:{f} tool<f>:1",
        ),
        (
            "a call that was interrupted",
            |d| {
                vec![
                    user("go"),
                    assistant(d, "x", &[(Some("a"), "f"), (Some("b"), "g")]),
                    results(d, &[(Some("a"), "1")]),
                    user("stop"),
                ]
            },
            "user:go assistant:x{f}{g} tool<f>:1 user:stop",
        ),
        (
            "a turn with nothing in it",
            |d| {
                vec![
                    user("go"),
                    assistant(d, "x", &[]),
                    user("on"),
                    assistant(d, "y", &[]),
                    user("end"),
                ]
            },
            "user:go assistant:x user:on assistant:y user:end",
        ),
    ];
    for (about, history, expected) in histories {
        for dialect in ALL {
            let turns = Value::Array(history(dialect).concat());
            let read = messages(dialect, &turns);
            let read = read.map_err(|error| format!("{about}: {dialect:?}: {error}"));
            assert_eq!(told(&read.unwrap()), expected, "{about}: {dialect:?}");
        }
    }
}

#[test]
fn a_result_whose_call_is_gone_is_told_or_its_client_is_told_what_to_drop() {
    let histories: [(&str, History, &str, [&str; 3]); 3] = [
        (
            "the call was trimmed away",
            |d| vec![results(d, &[(Some("a"), "1")]), user("on")],
            "user:<tool_response>|1|</tool_response> user:on",
            ["messages[0]", "input[0]", "messages[0].content[0]"],
        ),
        (
            "the call was trimmed away, and an id was never there",
            |d| vec![results(d, &[(None, "1")]), user("on")],
            "user:<tool_response>|1|</tool_response> user:on",
            ["messages[0]", "input[0]", "messages[0].content[0]"],
        ),
        (
            "two results of one call",
            |d| {
                vec![
                    user("go"),
                    assistant(d, "", &[(Some("a"), "f")]),
                    results(d, &[(Some("a"), "1")]),
                    results(d, &[(Some("a"), "2")]),
                ]
            },
            "user:go assistant:{f} tool<f>:1 user:<tool_response>|2|</tool_response>",
            ["messages[3]", "input[3]", "messages[3].content[0]"],
        ),
    ];
    for (about, history, taken, dropped) in histories {
        let turns = |dialect| Value::Array(history(dialect).concat());
        let read = messages(Ollama, &turns(Ollama)).unwrap();
        assert_eq!(told(&read), taken, "{about}");
        for (dialect, place) in [OpenAi, Items, Anthropic].into_iter().zip(dropped) {
            let said = messages(dialect, &turns(dialect)).unwrap_err().to_string();
            let advice = format!("drop {place}");
            assert!(said.contains(&advice), "{about}: {dialect:?}: {said}");
        }
    }
}

#[test]
fn thoughts_are_replayed_in_any_shape() {
    let as_fields = [
        json!({"reasoning_content": "hm"}),
        json!({"reasoning": "hm"}),
        json!({"reasoning_text": "hm"}),
        json!({"thinking": "hm"}),
        json!({"thinking": ["hm"]}),
        json!({"reasoning": {"content": "hm"}}),
        json!({"reasoning": "hm", "reasoning_content": "hm"}),
        json!({"reasoning_details": [
            {"type": "reasoning.text", "text": "hm", "signature": null},
            {"type": "reasoning.encrypted", "data": "x"},
        ]}),
        json!({"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}),
    ];
    let as_parts = [
        json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
        json!({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}),
        json!({"type": "thinking", "text": "hm"}),
        json!({"type": "reasoning", "text": "hm"}),
        json!({"type": "reasoning", "reasoning": "hm"}),
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}),
        json!({"type": "reasoning_text", "text": "hm"}),
    ];
    let said = json!({"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}});
    let sealed = json!({"type": "redacted_thinking", "data": "x"});
    let mut turns: Vec<Value> = as_fields
        .into_iter()
        .map(|mut turn| {
            turn["content"] = "b".into();
            turn
        })
        .collect();
    for part in as_parts {
        turns.push(json!({"content": [part, said]}));
        turns.push(json!({"content": [sealed, part, said], "reasoning_content": "hm"}));
    }
    for mut turn in turns {
        turn["role"] = "assistant".into();
        let turns =
            json!([{"role": "user", "content": "a"}, turn, {"role": "user", "content": "c"}]);
        for dialect in ALL {
            let read = messages(dialect, &turns);
            let read = read.map_err(|error| format!("{dialect:?}: {turn}: {error}"));
            let expected = "user:a assistant(hm):b user:c";
            assert_eq!(told(&read.unwrap()), expected, "{dialect:?}: {turn}");
        }
    }
}

#[test]
fn reasoning_items_are_read_in_any_shape() {
    for item in [
        json!({"summary": [{"type": "summary_text", "text": "hm"}]}),
        json!({"summary": ["hm"]}),
        json!({"summary": "hm"}),
        json!({"summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}),
        json!({"summary": [{"text": "short"}], "content": "hm"}),
        json!({"text": "hm", "encrypted_content": "of another server"}),
    ] {
        let mut item = item;
        item["type"] = "reasoning".into();
        let turns = json!([
            {"role": "user", "content": "a"}, item, {"role": "assistant", "content": "b"},
        ]);
        let read = messages(Items, &turns).unwrap();
        assert_eq!(told(&read), "user:a assistant(hm):b", "{item}");
    }
}

#[test]
fn content_is_read_in_any_shape() {
    let cases: [(&[Dialect], Value, &str); 12] = [
        (&ALL, json!({"role": "user", "content": ""}), "user:"),
        (&ALL, json!({"role": "user", "content": "x"}), "user:x"),
        (
            &ALL,
            json!({"role": "user", "content": [{"type": "text", "text": "x", "annotations": []}]}),
            "user:x",
        ),
        (
            &ALL,
            json!({"role": "user", "content": [{"type": "input_text", "text": "x"}]}),
            "user:x",
        ),
        (
            &ALL,
            json!({"role": "user", "content": [{"type": "hologram", "text": "x"}]}),
            "user:x",
        ),
        (
            &[OpenAi, Items, Ollama],
            json!({"role": "user", "content": [{"text": "x"}]}),
            "user:x",
        ),
        (
            &ALL,
            json!({"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
            ]}),
            "user:[image]",
        ),
        (
            &ALL,
            json!({"role": "user", "content": [{"type": "image", "source":
                {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}]}),
            "user:[image]",
        ),
        (
            &[OpenAi, Ollama],
            json!({"role": "user", "content": "x", "images": ["iVBORw=="]}),
            "user:[image]x",
        ),
        (
            &ALL,
            json!({"role": "developer", "content": "x"}),
            "system:x",
        ),
        (&ALL, json!({"role": "system", "content": "x"}), "system:x"),
        (
            &ALL,
            json!({"role": "assistant", "content": [{"type": "refusal", "refusal": "x"}],
                "refusal": null, "tool_calls": null}),
            "assistant:x",
        ),
    ];
    for (dialects, turn, expected) in cases {
        let turns =
            json!([{"role": "user", "content": "a"}, turn, {"role": "user", "content": "c"}]);
        for dialect in dialects {
            let read = messages(*dialect, &turns);
            let read = read.map_err(|error| format!("{dialect:?}: {turn}: {error}"));
            let read = told(&read.unwrap());
            // Anthropic's dialect leaves out a turn that says nothing.
            let kept = *dialect != Anthropic || expected != "user:";
            let middle = if kept {
                format!("{expected} ")
            } else {
                String::new()
            };
            assert_eq!(
                read,
                format!("user:a {middle}user:c"),
                "{dialect:?}: {turn}"
            );
        }
    }
}

#[test]
fn an_assistant_that_said_nothing_is_no_error() {
    for turn in [
        json!({"role": "assistant", "content": ""}),
        json!({"role": "assistant", "content": null}),
        json!({"role": "assistant", "content": []}),
        json!({"role": "assistant"}),
        json!({"role": "assistant", "content": null, "tool_calls": []}),
    ] {
        let turns =
            json!([{"role": "user", "content": "a"}, turn, {"role": "user", "content": "c"}]);
        for dialect in ALL {
            let read = messages(dialect, &turns);
            assert!(read.is_ok(), "{dialect:?}: {turn}: {read:?}");
        }
    }
}

#[test]
fn calls_and_results_of_other_dialects_are_refused_by_name() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": "1"});
    let block = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    ]});
    let result_block = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": "1"},
    ]});
    for (dialect, turn, param) in [
        (Anthropic, &calls, "messages[0].tool_calls"),
        (Anthropic, &result, "messages[0].role"),
        (Items, &calls, "input[0].tool_calls"),
        (Items, &result, "input[0].role"),
        (Items, &block, "input[0].content[0]"),
        (OpenAi, &block, "messages[0].content[0]"),
        (OpenAi, &result_block, "messages[0].content[0]"),
        (Ollama, &block, "messages[0].content[0]"),
        (Ollama, &result_block, "messages[0].content[0]"),
    ] {
        let error = messages(dialect, &json!([turn])).unwrap_err();
        let named = match &error {
            Error::Invalid { param, .. } => param.as_deref(),
            Error::Unsupported { param, .. } => Some(param.as_str()),
            _ => None,
        };
        assert_eq!(named, Some(param), "{dialect:?}: {error}");
    }
}
