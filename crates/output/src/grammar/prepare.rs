//! Schemas in words that llguidance can follow, meaning the same.

use serde_json::{Map, Value};

use super::plain;

/// Formats that JSON Schema defines. Any other is a note to readers, as its specification says.
const FORMATS: [&str; 20] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "unknown",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Keywords whose values are data, not schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// The days of the calendar that programs reckon by, of texts that look like dates: no year 0, and a
/// 29th of February in leap years only.
const DAY: &str = concat!(
    "(?:",
    "(?:[1-9][0-9]{3}|0(?:[1-9][0-9]{2}|0(?:[1-9][0-9]|0[1-9])))",
    "-(?:(?:0[13-9]|1[0-2])-[0-9]{2}|02-(?:[01][0-9]|2[0-8]))",
    "|",
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29",
    ")",
);

/// Where a time is not in a leap second, of which programs know nothing either.
const SECOND: &str = "[0-9]{2}:[0-9]{2}:[0-5]";

/// References that are put in place of each other, one inside the next.
const DEPTH_LIMIT: usize = 3;

/// Returns the schema without unknown formats, and with references among the branches of `oneOf`
/// resolved: llguidance takes `oneOf` where it sees that no two branches can both be satisfied, and
/// does not look through references. Unions told apart by a tag are written so.
pub(super) fn prepare(schema: &Value) -> Value {
    let schema = plain::schema(schema);
    rewrite(&schema, &schema, DEPTH_LIMIT)
}

fn rewrite(schema: &Value, root: &Value, depth: usize) -> Value {
    match schema {
        Value::Object(keywords) => {
            let mut kept: Map<String, Value> = keywords
                .iter()
                .filter(|(keyword, value)| *keyword != "format" || is_defined(value))
                .map(|(keyword, value)| (keyword.clone(), member(keyword, value, root, depth)))
                .collect();
            if let Some(pattern) = kept.get("format").and_then(within_reckoning) {
                kept.entry("pattern").or_insert_with(|| pattern.into());
            }
            Value::Object(kept)
        }
        Value::Array(items) => {
            let items = items.iter();
            Value::Array(items.map(|item| rewrite(item, root, depth)).collect())
        }
        other => other.clone(),
    }
}

fn member(keyword: &str, value: &Value, root: &Value, depth: usize) -> Value {
    match (keyword, value) {
        _ if DATA.contains(&keyword) => value.clone(),
        // Names, of which one may be that of a keyword.
        ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(members)) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(name, schema)| (name.clone(), rewrite(schema, root, depth)))
                    .collect(),
            )
        }
        ("oneOf", Value::Array(branches)) if depth > 0 => {
            let branches = branches.iter();
            Value::Array(
                branches
                    .map(|branch| match target(branch, root) {
                        Some(target) => rewrite(target, root, depth - 1),
                        None => rewrite(branch, root, depth),
                    })
                    .collect(),
            )
        }
        _ => rewrite(value, root, depth),
    }
}

/// What dates and times begin with that are not only of the standard's form.
fn within_reckoning(format: &Value) -> Option<String> {
    match format.as_str()? {
        "date" => Some(format!("^{DAY}")),
        "date-time" => Some(format!("^{DAY}[tT]{SECOND}")),
        "time" => Some(format!("^{SECOND}")),
        _ => None,
    }
}

fn is_defined(format: &Value) -> bool {
    format.as_str().is_none_or(|name| FORMATS.contains(&name))
}

/// What a schema that is nothing but a reference into the same document refers to.
fn target<'a>(schema: &Value, root: &'a Value) -> Option<&'a Value> {
    let keywords = schema.as_object().filter(|keywords| keywords.len() == 1)?;
    let pointer = keywords.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(pointer).filter(|target| target.is_object())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn formats_that_nobody_defines_are_notes() {
        let schema = json!({
            "properties": {"format": {"format": "path"}, "b": {"format": "uuid"}},
            "enum": [{"format": "path"}],
        });
        let expected = json!({
            "properties": {"format": {}, "b": {"format": "uuid"}},
            "enum": [{"format": "path"}],
        });
        assert_eq!(prepare(&schema), expected);
    }

    #[test]
    fn unions_are_seen_through_references() {
        let schema = json!({
            "oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"type": "null"}],
            "$defs": {"a": {"const": 1}, "b": {"oneOf": [{"$ref": "#"}]}},
        });
        let prepared = prepare(&schema);
        assert_eq!(prepared["oneOf"][0], json!({"const": 1}));
        assert_eq!(prepared["oneOf"][2], json!({"type": "null"}));
        // A schema within itself has an end.
        assert!(prepared.to_string().contains("$ref"));
    }
}
