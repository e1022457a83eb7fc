//! JSON bodies with errors that say where.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::Error;

/// The body as a JSON object. An empty body is an empty object, so that the error names the first
/// missing field rather than the end of the input.
pub fn object(body: &[u8]) -> Result<Value, Error> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Error::Invalid {
            param: None,
            message: "the request body must be a JSON object".into(),
        }),
        Err(error) => Err(Error::Invalid {
            param: None,
            message: format!("the request body is not valid JSON: {error}"),
        }),
    }
}

/// The fields `T` knows of an object; others are left alone. Several types may read one object.
pub fn fields<T: DeserializeOwned>(object: &Value) -> Result<T, Error> {
    fields_at(object, "")
}

/// As [`fields`] for a value found at `path`.
pub fn fields_at<'de, T: Deserialize<'de>>(value: &'de Value, path: &str) -> Result<T, Error> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let message = in_words(&error.inner().to_string());
        let mut param = joined(path, &error.path().to_string());
        if let Some(field) = missing_field(&message) {
            param = joined(&param, field);
        }
        let message = if param.is_empty() {
            message
        } else {
            format!("{param}: {message}")
        };
        Error::Invalid {
            param: (!param.is_empty()).then_some(param),
            message,
        }
    })
}

/// A wire type as JSON.
pub fn value(wire: &impl Serialize) -> Value {
    // Fails only for maps whose keys are no text, which no wire type has.
    serde_json::to_value(wire).unwrap_or_default()
}

/// A wire type as the text of a frame.
pub fn text(wire: &impl Serialize) -> String {
    // As above.
    serde_json::to_string(wire).unwrap_or_default()
}

/// A path and what follows it; `.` is serde's word for the value itself.
fn joined(path: &str, rest: &str) -> String {
    match (path, rest) {
        (_, "." | "") => path.to_owned(),
        ("", _) => rest.to_owned(),
        (_, rest) if rest.starts_with('[') => format!("{path}{rest}"),
        _ => format!("{path}.{rest}"),
    }
}

/// serde names Rust's types; clients know JSON's.
fn in_words(message: &str) -> String {
    let types = [
        ("f32", "a number"),
        ("i64", "an integer"),
        ("u32", "a non-negative integer"),
        ("struct ", "an object for "),
    ];
    let mut words = message.to_owned();
    for (rust, json) in types {
        words = words.replace(&format!("expected {rust}"), &format!("expected {json}"));
    }
    words
}

/// The name in serde's "missing field `name`".
fn missing_field(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.split('`').next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Turn {
        #[expect(dead_code, reason = "only its type matters")]
        role: String,
    }

    #[derive(Debug, Deserialize)]
    struct Body {
        #[expect(dead_code, reason = "only its type matters")]
        turns: Vec<Turn>,
    }

    fn param(error: Error) -> String {
        match error {
            Error::Invalid { param, .. } => param.unwrap_or_default(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn type_errors_name_the_path() {
        let body = json!({"turns": [{"role": "a"}, {"role": 1}]});
        assert_eq!(param(fields::<Body>(&body).unwrap_err()), "turns[1].role");
    }

    #[test]
    fn missing_fields_are_named() {
        assert_eq!(param(fields::<Body>(&json!({})).unwrap_err()), "turns");
        let nested = json!({"turns": [{"role": "a"}, {}]});
        assert_eq!(param(fields::<Body>(&nested).unwrap_err()), "turns[1].role");
        let turn = json!({});
        assert_eq!(
            param(fields_at::<Turn>(&turn, "turns[3]").unwrap_err()),
            "turns[3].role"
        );
    }

    #[test]
    fn only_objects_are_bodies() {
        for body in ["[]", "1", "{", "\u{feff}{}", "{\"a\":NaN}"] {
            assert!(object(body.as_bytes()).is_err(), "{body}");
        }
        assert_eq!(object(b" \n").unwrap(), json!({}));
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let body = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(object(body.as_bytes()).is_err());
    }
}
