//! Tool calls as JSON objects, the body that several formats share.
//!
//! Read are `{"name", "arguments"}` and `{"name", "parameters"}`, alone, in a list, or one after
//! the other with `;`, `,` or white space between, in a Markdown fence or not.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{Call, Parsed};

/// How a call begins that has no marker before it.
pub(super) const STARTS: &[&str] = &[
    r#"{"name":""#,
    r#"[{"name":""#,
    r#"{"type":"function""#,
    r#"```json{"name":""#,
    r#"```json[{"name":""#,
];

#[derive(Deserialize)]
struct WireCall<'a> {
    name: String,
    #[serde(borrow, alias = "parameters")]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Nested<'a> {
    #[serde(borrow)]
    function: WireCall<'a>,
}

/// Reads a whole body.
pub(super) fn parse(body: &str) -> Parsed {
    let trimmed = body.trim();
    let (text, fenced) = match trimmed.strip_prefix("```json") {
        Some(inner) => (inner, true),
        None => (trimmed, false),
    };
    let mut calls = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == ',');
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let Some(Ok(value)) = values.next() else {
            break;
        };
        let Some(found) = calls_of(value.get()) else {
            break;
        };
        calls.extend(found);
        rest = &rest[values.byte_offset()..];
    }
    if calls.is_empty() {
        return if ends_inside_string(text) {
            Parsed::InsideString
        } else {
            Parsed::Text
        };
    }
    if fenced {
        rest = rest.trim_start();
        rest = rest.strip_prefix("```").unwrap_or(rest);
    }
    let rest = rest.trim();
    Parsed::Calls {
        calls,
        rest_len: rest.len(),
    }
}

/// Whether JSON text is cut inside a string.
pub(super) fn ends_inside_string(json: &str) -> bool {
    let mut inside = false;
    let mut escaped = false;
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    inside
}

/// The calls in one JSON value, `None` when it is anything else.
fn calls_of(json: &str) -> Option<Vec<Call>> {
    if json.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
        let calls: Option<Vec<Call>> = items.iter().map(|item| call_of(item.get())).collect();
        return calls.filter(|calls| !calls.is_empty());
    }
    call_of(json).map(|call| vec![call])
}

fn call_of(json: &str) -> Option<Call> {
    let call: WireCall<'_> = serde_json::from_str(json)
        .or_else(|_| serde_json::from_str(json).map(|nested: Nested<'_>| nested.function))
        .ok()?;
    let arguments = match call.arguments.map(RawValue::get) {
        // Other keys instead of arguments: some other object that has a name.
        None if has_other_keys(json) => return None,
        None | Some("null") => "{}".into(),
        // Some models write the object as a string, as the OpenAI API does.
        Some(text) if text.starts_with('"') => {
            let inner: String = serde_json::from_str(text).ok()?;
            let value: Value = serde_json::from_str(&inner).ok()?;
            value.is_object().then_some(inner)?
        }
        Some(text) if text.starts_with('{') => text.into(),
        Some(_) => return None,
    };
    (!call.name.is_empty()).then_some(Call {
        name: call.name,
        arguments,
    })
}

fn has_other_keys(json: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, Value>>(json).is_ok_and(|object| {
        object
            .keys()
            .any(|key| !["name", "type", "id", "function"].contains(&key.as_str()))
    })
}
