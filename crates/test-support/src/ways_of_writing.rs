//! One JSON document in the ways that other programs and people write it.

use serde_json::Value;

/// How a document may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A request, an answer or a message.
    Message,
    /// A file that people edit.
    Edited,
    /// A file of a model's folder.
    Model,
}

/// The document, which holds an object, in each way of its source, with what the way is called. All
/// mean the same.
pub fn ways_of_writing(document: &Value, source: Source) -> Vec<(&'static str, Vec<u8>)> {
    let plain = document.to_string();
    let with = |member: &[u8]| -> Vec<u8> {
        let (before, after) = plain.split_once('{').unwrap_or_default();
        let comma = if after.starts_with('}') { "" } else { "," };
        let parts = [before, "{"].concat().into_bytes();
        [&parts, member, comma.as_bytes(), after.as_bytes()].concat()
    };
    let mut ways = vec![
        ("plain", plain.clone().into_bytes()),
        ("indented", format!("{document:#}\r\n").into_bytes()),
        ("byte order mark", format!("\u{feff}{plain}").into_bytes()),
        ("half a surrogate pair", with(br#""x-odd":"cut \ud83d""#)),
        ("a name with half a pair", with(br#""x-\udc00":1"#)),
        (
            "bytes that are no text",
            with(b"\"x-odd\":\"\xff\xe2\x82\""),
        ),
        ("a member twice", with(br#""x-odd":1,"x-odd":2"#)),
    ];
    if source != Source::Message {
        let (rest, end) = plain.split_at(plain.len() - 1);
        let last_comma = [rest, ",\n", end].concat();
        ways.extend([
            (
                "comments",
                format!("// one\n{plain} /* two */").into_bytes(),
            ),
            ("a comma at the end", last_comma.into_bytes()),
        ]);
    }
    if source == Source::Model {
        ways.extend([
            ("a number that is none", with(br#""x-odd":NaN"#)),
            (
                "numbers without end",
                with(br#""x-odd":[Infinity,-Infinity]"#),
            ),
        ]);
    }
    let mut fractions = document.clone();
    write_fractions(&mut fractions);
    ways.push((
        "whole numbers as fractions",
        fractions.to_string().into_bytes(),
    ));
    ways
}

/// Makes `3.0` of `3`.
fn write_fractions(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_i64().map(|integer| integer as f64) {
                *value = float.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_fractions),
        Value::Object(members) => members.values_mut().for_each(write_fractions),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_source_has_its_ways() {
        let names = |source| -> Vec<&str> {
            let ways = ways_of_writing(&json!({"a": 3}), source);
            ways.iter().map(|(name, _)| *name).collect()
        };
        assert_eq!(names(Source::Message).len(), 8);
        assert_eq!(names(Source::Edited).len(), 10);
        assert_eq!(names(Source::Model).len(), 12);
        let ways = ways_of_writing(&json!({"a": 3}), Source::Message);
        assert_eq!(ways[7].1, b"{\"a\":3.0}");
        assert_eq!(ways[6].1, b"{\"x-odd\":1,\"x-odd\":2,\"a\":3}");
    }
}
