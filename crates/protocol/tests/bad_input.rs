//! What clients of OpenAI's endpoints get wrong, and the field that the error names.

#![expect(clippy::panic, reason = "a test fails by panicking, its helpers too")]

use macmlx_protocol::{
    Body, Context, Dialect, Endpoint, Error,
    openai::{chat_completions::ChatCompletions, completions::Completions},
};
use serde_json::{Value, json};

fn refusal<E: Endpoint>(body: &str) -> Error {
    let context = Context {
        id: String::new(),
        created_unix: 0,
        fingerprint: String::new(),
    };
    match E::parse(Body::json(body.as_bytes())).and_then(|request| E::translate(request, context)) {
        Ok(_) => panic!("taken: {}", body.get(..200).unwrap_or(body)),
        Err(error) => error,
    }
}

/// The field that the error's reply names; the reply is a 400.
fn named<E: Endpoint>(body: &str) -> Value {
    let reply = Dialect::OpenAi.error_reply(&refusal::<E>(body));
    assert_eq!(reply.status, 400, "{}", reply.body);
    assert_eq!(reply.body["error"]["type"], "invalid_request_error");
    assert!(reply.body["error"]["message"].is_string());
    reply.body["error"]["param"].clone()
}

fn chat(field: &str, value: &Value) -> String {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    body[field] = value.clone();
    body.to_string()
}

fn completion(field: &str, value: &Value) -> String {
    let mut body = json!({"model": "m", "prompt": "Hi"});
    body[field] = value.clone();
    body.to_string()
}

#[test]
fn bodies_that_are_no_json_object() {
    let deep = format!(
        r#"{{"model": "m", "messages": {}{}}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    let deep_objects = format!(
        r#"{{"model": "m", "metadata": {}1{}}}"#,
        r#"{"a":"#.repeat(200_000),
        "}".repeat(200_000)
    );
    for body in [
        "null",
        "true",
        "1",
        "\"text\"",
        "[]",
        "{",
        "{}}",
        r#"{"model": "m""#,
        r#"{"model": NaN}"#,
        r#"{"model": Infinity}"#,
        r#"{"temperature": 1e999}"#,
        "{'model': 'm'}",
        "{\"model\": \"\u{1}\"}",
        &deep,
        &deep_objects,
    ] {
        assert_eq!(named::<ChatCompletions>(body), Value::Null);
        assert_eq!(named::<Completions>(body), Value::Null);
    }
}

#[test]
fn bytes_that_are_no_text() {
    for body in [&b"{\"model\": \xff}"[..], b"\xff\xfe{\0}\0", b"\0"] {
        assert!(ChatCompletions::parse(Body::json(body)).is_err());
        assert!(Completions::parse(Body::json(body)).is_err());
    }
}

#[test]
fn options_of_the_wrong_type_or_size() {
    let huge = serde_json::from_str::<Value>("123456789012345678901234567890").unwrap();
    for (field, values) in [
        ("model", vec![json!(null), json!(5), json!([]), json!({})]),
        (
            "n",
            vec![
                json!(0),
                json!(-1),
                json!(129),
                json!(1.5),
                json!("2"),
                huge.clone(),
            ],
        ),
        (
            "temperature",
            vec![
                json!(-0.1),
                json!(2.1),
                json!(1e300),
                json!("0.5"),
                json!([]),
            ],
        ),
        ("top_p", vec![json!(-1), json!(1.01), json!("1")]),
        ("top_k", vec![json!(-2), json!(0.5), huge.clone()]),
        ("presence_penalty", vec![json!(-2.1), json!(2.1), json!({})]),
        ("frequency_penalty", vec![json!(-2.1), json!(true)]),
        ("seed", vec![json!(0.5), json!("1"), huge.clone()]),
        (
            "max_tokens",
            vec![json!(0), json!(-3), json!(0.5), json!("all"), huge.clone()],
        ),
        (
            "stop",
            vec![json!(""), json!([""]), json!([1]), json!({}), json!(0)],
        ),
        ("stream", vec![json!("true"), json!(1)]),
        (
            "logit_bias",
            vec![json!({"a": 1}), json!({"-1": 1}), json!([1])],
        ),
        (
            "response_format",
            vec![
                json!("json"),
                json!({}),
                json!({"type": "structural_tag"}),
                json!({"type": "json_schema"}),
                json!({"type": "json_schema", "json_schema": {"schema": []}}),
                json!({"type": "json_object", "json_schema": {"schema": {}}}),
            ],
        ),
        ("guided_json", vec![json!("{"), json!(true), json!([])]),
        ("guided_choice", vec![json!("a"), json!([1])]),
        ("guided_grammar", vec![json!({})]),
        (
            "structured_outputs",
            vec![
                json!([]),
                json!({"json": []}),
                json!({"jsn": {}}),
                json!({"json": {}, "choice": ["a"]}),
            ],
        ),
    ] {
        for value in values {
            for param in [
                named::<ChatCompletions>(&chat(field, &value)),
                named::<Completions>(&completion(field, &value)),
            ] {
                let param = param.as_str().unwrap_or_else(|| panic!("{field}: {value}"));
                assert!(
                    param == field
                        || param.starts_with(&format!("{field}."))
                        || param.starts_with(&format!("{field}[")),
                    "{field}: {value} is blamed on {param}"
                );
            }
        }
    }
}

#[test]
fn options_of_chat_alone() {
    for (field, value, param) in [
        ("messages", json!(null), "messages"),
        ("messages", json!("Hi"), "messages"),
        ("messages", json!([]), "messages"),
        ("messages", json!([null]), "messages[0]"),
        ("messages", json!([[]]), "messages[0]"),
        ("messages", json!([{}]), "messages[0].role"),
        (
            "messages",
            json!([{"role": "robot", "content": "x"}]),
            "messages[0].role",
        ),
        (
            "messages",
            json!([{"role": null, "content": "x"}]),
            "messages[0].role",
        ),
        ("messages", json!([{"role": "user"}]), "messages[0].content"),
        (
            "messages",
            json!([{"role": "user", "content": 1}]),
            "messages[0].content",
        ),
        (
            "messages",
            json!([{"role": "user", "content": [1]}]),
            "messages[0].content[0]",
        ),
        (
            "messages",
            json!([{"role": "user", "content": [{"type": "hologram"}]}]),
            "messages[0].content[0]",
        ),
        (
            "messages",
            json!([{"role": "tool", "tool_call_id": "c", "content": "x"}]),
            "messages[0].tool_call_id",
        ),
        (
            "messages",
            json!([{"role": "assistant", "tool_calls": {}}]),
            "messages[0].tool_calls",
        ),
        ("tools", json!({}), "tools"),
        ("tools", json!([1]), "tools[0]"),
        (
            "tools",
            json!([{"type": "function", "function": "f"}]),
            "tools[0].function",
        ),
        ("tool_choice", json!("maybe"), "tool_choice"),
        ("tool_choice", json!([]), "tool_choice"),
        ("parallel_tool_calls", json!("no"), "parallel_tool_calls"),
        ("functions", json!([{}]), "functions[0].name"),
        ("top_logprobs", json!(2), "top_logprobs"),
        ("top_logprobs", json!(21), "top_logprobs"),
        ("logprobs", json!(5), "logprobs"),
        ("reasoning_effort", json!("enormous"), "reasoning_effort"),
        ("reasoning_effort", json!(5), "reasoning_effort"),
        (
            "prediction",
            json!({"type": "content", "content": "x"}),
            "prediction",
        ),
        ("modalities", json!(["audio"]), "modalities"),
        ("audio", json!({"voice": "v"}), "audio"),
        ("web_search_options", json!({}), "web_search_options"),
        ("stream_options", json!([1, 2, 3, "x"]), "stream_options"),
        ("chat_template_kwargs", json!("x"), "chat_template_kwargs"),
    ] {
        let blamed = named::<ChatCompletions>(&chat(field, &value));
        let blamed = blamed.as_str().unwrap_or_default();
        assert!(
            blamed == param
                || blamed.starts_with(&format!("{param}."))
                || blamed.starts_with(&format!("{param}[")),
            "{field}: {value} is blamed on {blamed}"
        );
    }
}

#[test]
fn prompts_that_are_none() {
    for prompt in [
        json!(null),
        json!(5),
        json!({}),
        json!([]),
        json!([[]]),
        json!(["a", 1]),
        json!([1, "a"]),
        json!([[-1]]),
        json!([1.5]),
        json!(vec!["a"; 1025]),
    ] {
        let param = named::<Completions>(&completion("prompt", &prompt));
        let param = param.as_str().unwrap_or_default().to_owned();
        assert!(param.starts_with("prompt"), "{prompt}: {param}");
    }
}

#[test]
fn sizes_a_client_can_think_of_are_clamped() {
    for field in ["max_tokens", "max_completion_tokens"] {
        for value in [json!(1), json!(1_000_000_000), json!(i64::MAX)] {
            assert!(ChatCompletions::parse(Body::json(chat(field, &value).as_bytes())).is_ok());
        }
    }
}
