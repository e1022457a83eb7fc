//! Every mistake of a client is an error that names it, never a panic.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, its helpers too"
)]

use std::{fs, path::Path};

use macmlx_protocol::{
    Body, Context, Described, Encoding, Error,
    endpoints::{Route, Visitor, visit},
};
use serde_json::{Value, json};

/// Agents' requests have every field of smaller ones, many times over.
const LARGE_BYTES: usize = 3000;

/// What stands in for each value of a request, one at a time.
fn wrong_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(0.5),
        json!(1e308),
        json!(u64::MAX),
        json!(""),
        json!("\u{0}\u{fffd}"),
        json!([]),
        json!([[[]]]),
        json!([null, 1, "a", {}]),
        json!({}),
        json!({"type": "text", "role": 1, "function": null}),
    ]
}

#[test]
fn no_value_anywhere_is_fatal() {
    for dialect in ["openai", "anthropic", "responses", "ollama"] {
        let refused = refusals(dialect);
        assert!(refused > 1000, "{dialect}: {refused}");
    }
}

/// How many of the broken requests of a dialect are refused.
fn refusals(dialect: &str) -> u32 {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/protocol");
    let mut refused = 0;
    for entry in fs::read_dir(root.join(dialect)).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path().join("request.json")).unwrap();
        if text.len() > LARGE_BYTES {
            continue;
        }
        let request: Value = serde_json::from_str(&text).unwrap();
        let path = request["path"].as_str().unwrap();
        for place in places(&request["body"]) {
            for value in wrong_values() {
                let mut body = request["body"].clone();
                *body.pointer_mut(&place).unwrap() = value;
                let mut asked = Asked {
                    path: path.split('?').next().unwrap(),
                    body: body.to_string(),
                    result: None,
                };
                visit(&mut asked);
                let result = asked
                    .result
                    .unwrap_or_else(|| panic!("no endpoint takes {path}"));
                if let Err(error) = result {
                    refused += 1;
                    says_what(&error, &place);
                }
            }
        }
    }
    refused
}

/// JSON pointers of all values in the first three levels of messages and all options.
fn places(body: &Value) -> Vec<String> {
    let mut places = Vec::new();
    collect(body, "", 0, &mut places);
    places
}

fn collect(value: &Value, place: &str, depth: usize, places: &mut Vec<String>) {
    if depth > 0 {
        places.push(place.to_owned());
    }
    if depth == 5 {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(value, &format!("{place}/{name}"), depth + 1, places);
            }
        }
        // The first items of a list stand for the others.
        Value::Array(items) => {
            for (index, value) in items.iter().take(4).enumerate() {
                collect(value, &format!("{place}/{index}"), depth + 1, places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What the endpoint of a path says of a body.
struct Asked<'a> {
    path: &'a str,
    body: String,
    result: Option<Result<(), Error>>,
}

impl Visitor for Asked<'_> {
    fn generating<E: Described>(&mut self, route: Route) {
        if route.path == self.path {
            let context = Context {
                id: String::new(),
                created_unix: 0,
                fingerprint: String::new(),
            };
            let request = E::parse(Body::json(self.body.as_bytes()));
            let translation = request.and_then(|request| E::translate(request, context));
            self.result = Some(translation.map(drop));
        }
    }

    fn encoding<E: Encoding>(&mut self, route: Route) {
        if route.path == self.path {
            let request = E::parse(Body::json(self.body.as_bytes()));
            let question = request.and_then(|request| request.question());
            self.result = Some(question.map(drop));
        }
    }
}

/// Words of our code and of the crates that read for it, which mean nothing to a client.
const WORDS_OF_CODE: &[&str] = &[
    "invalid type",
    "invalid value",
    "invalid length",
    "missing field",
    "unknown variant",
    "unknown field",
    "a sequence",
    "a map",
    "expected an object for",
    "struct ",
    "untagged",
    "variant of",
    "enum ",
    "u8",
    "u16",
    "u32",
    "u64",
    "i32",
    "i64",
    "i128",
    "f32",
    "f64",
    "unit value",
    "floating point",
    "Option",
    "Some(",
    "None",
];

fn says_what(error: &Error, place: &str) {
    let told = error.to_string();
    for word in WORDS_OF_CODE {
        // Fields of clients may have such names.
        assert!(
            !told
                .replace("structured", "")
                .replace("anyOf", "")
                .contains(word),
            "{place}: {told}"
        );
    }
    match error {
        Error::Invalid {
            param: Some(param), ..
        }
        | Error::NotKept {
            param: Some(param), ..
        }
        | Error::Unsupported { param, .. } => assert!(!param.is_empty(), "{place}: {error}"),
        other => panic!("{place}: {other:?}"),
    }
}
