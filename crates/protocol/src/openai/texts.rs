//! A field that holds a text, tokens, or a list of either.

use serde_json::Value;

use crate::{Error, json};

/// One item for each text or array of tokens: at least one, at most `limit`.
pub(super) fn read<T>(
    value: &Value,
    name: &str,
    limit: usize,
    text: fn(String) -> T,
    tokens: fn(Vec<u32>) -> T,
) -> Result<Vec<T>, Error> {
    let tokens_at = |value: &Value, path: &str| match json::fields_at::<Vec<u32>>(value, path)? {
        ids if ids.is_empty() => Err(Error::invalid(path, format!("{path} has no tokens"))),
        ids => Ok(tokens(ids)),
    };
    let items = match value {
        Value::String(only) => return Ok(vec![text(only.clone())]),
        Value::Array(items) => items,
        _ => return Err(wrong(name)),
    };
    match items.as_slice() {
        [] => Err(Error::invalid(name, format!("{name} is empty"))),
        [Value::Number(_), ..] => Ok(vec![tokens_at(value, name)?]),
        items if items.len() > limit => Err(Error::invalid(
            name,
            format!(
                "{name} has {} items; at most {limit} are taken at once",
                items.len()
            ),
        )),
        items => items
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let path = format!("{name}[{index}]");
                match item {
                    Value::String(item) => Ok(text(item.clone())),
                    Value::Array(_) => tokens_at(item, &path),
                    _ => Err(wrong(&path)),
                }
            })
            .collect(),
    }
}

fn wrong(path: &str) -> Error {
    Error::invalid(
        path,
        format!("{path} must be a string, an array of strings, or an array or arrays of tokens"),
    )
}

#[cfg(test)]
mod tests {
    use macmlx_inference::EncoderInput::{self, Text, Tokens};
    use serde_json::json;

    use super::*;

    fn inputs(value: &Value) -> Result<Vec<EncoderInput>, Error> {
        read(value, "input", 3, Text, Tokens)
    }

    #[test]
    fn every_form_is_read() {
        for (value, expected) in [
            (json!("a"), vec![Text("a".into())]),
            (json!(""), vec![Text(String::new())]),
            (json!(["a", "b"]), vec![Text("a".into()), Text("b".into())]),
            (json!([1, 2, 3, 4]), vec![Tokens(vec![1, 2, 3, 4])]),
            (
                json!([[1, 2], [3]]),
                vec![Tokens(vec![1, 2]), Tokens(vec![3])],
            ),
            (json!(["a", [3]]), vec![Text("a".into()), Tokens(vec![3])]),
        ] {
            assert_eq!(inputs(&value), Ok(expected), "{value}");
        }
    }

    #[test]
    fn what_is_neither_is_named() {
        for (value, path) in [
            (json!(null), "input"),
            (json!(1), "input"),
            (json!({"text": "a"}), "input"),
            (json!([]), "input"),
            (json!(["a", "b", "c", "d"]), "input"),
            (json!(["a", 1]), "input[1]"),
            (json!(["a", null]), "input[1]"),
            (json!([["a"]]), "input[0][0]"),
            (json!([[1], []]), "input[1]"),
            (json!([1, "a"]), "input[1]"),
            (json!([1, -1]), "input[1]"),
            (json!([1, 1.5]), "input[1]"),
            (json!([[1, 4_294_967_296_u64]]), "input[0][1]"),
        ] {
            assert!(
                matches!(
                    inputs(&value),
                    Err(Error::Invalid { param: Some(param), .. }) if param == path
                ),
                "{value}: {:?}",
                inputs(&value)
            );
        }
    }
}
