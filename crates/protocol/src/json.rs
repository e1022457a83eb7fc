//! JSON bodies with errors that say where.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::Error;

#[cfg(test)]
pub(crate) mod asked;

/// The body as a JSON object. An empty body is an empty object, so that the error names the first
/// missing field rather than the end of the input.
pub fn object(body: &[u8]) -> Result<Value, Error> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match macmlx_json::parse(body) {
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

/// Does the same as [`fields`], for a value found at `path`.
pub fn fields_at<'de, T: Deserialize<'de>>(value: &'de Value, path: &str) -> Result<T, Error> {
    #[cfg(test)]
    asked::note::<T>(path);
    macmlx_json::read(value).map_err(|error| {
        let error = error.below(path);
        Error::Invalid {
            param: (!error.path().is_empty()).then(|| error.path().to_owned()),
            message: error.to_string(),
        }
    })
}

/// One value of a query string.
pub fn query_value<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Error> {
    macmlx_json::read_query_value(name, text)
        .map_err(|error| Error::invalid(name, error.to_string()))
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
        for body in ["[]", "1", "{", "{\"a\":NaN}"] {
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
