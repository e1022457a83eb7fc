//! Arguments written without JSON, put into the JSON object a client expects.

use std::collections::BTreeSet;

use serde_json::{Value, value::RawValue};

use super::Sink;

/// Writes the object one parameter at a time.
#[derive(Debug, Default)]
pub(super) struct ArgumentsWriter {
    count: usize,
    has_mistake: bool,
}

impl ArgumentsWriter {
    /// The name of the next parameter.
    pub(super) fn key(&mut self, key: &str, out: &mut Sink) {
        let before = if self.count == 0 { "{" } else { ", " };
        self.count += 1;
        out.arguments(&format!("{before}{}: ", quote(key)));
    }

    /// Text that is no parameter, for the caller to see what the model did.
    pub(super) fn mistake(&mut self, text: &str, out: &mut Sink) {
        self.has_mistake = true;
        out.arguments(text);
    }

    /// Parameters written so far.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// No more parameters: the object ends and the call with it.
    pub(super) fn close(&mut self, out: &mut Sink) {
        match self.count {
            0 if self.has_mistake => {}
            0 => out.arguments("{}"),
            _ => out.arguments("}"),
        }
        out.end();
        *self = Self::default();
    }
}

/// A JSON string.
pub(super) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// What stands between the quotes of a JSON string.
pub(super) fn escape(text: &str) -> String {
    let quoted = quote(text);
    quoted[1..quoted.len() - 1].to_owned()
}

/// Whether a parameter is text whatever it looks like.
pub(super) fn is_text(types: &BTreeSet<&str>) -> bool {
    types.len() == 1 && types.contains("string")
}

/// The JSON of a value that came as bare text, by the types its schema allows.
pub(super) fn write_as_json(text: &str, types: &BTreeSet<&str>) -> String {
    if is_text(types) {
        return quote(text);
    }
    // Some models write Python's words.
    let bare = match text.trim() {
        "True" => "true",
        "False" => "false",
        "None" => "null",
        bare => bare,
    };
    // As it stands: a number need not fit the types of this language.
    let is_json = serde_json::from_str::<&RawValue>(bare).is_ok();
    if is_json && allows(types, bare) {
        bare.into()
    } else {
        quote(text)
    }
}

/// Whether JSON text is of one of the types. Strings are none of several: as text they would stand
/// without quotes.
fn allows(types: &BTreeSet<&str>, json: &str) -> bool {
    let any = |names: &[&str]| names.iter().any(|name| types.contains(name));
    types.is_empty()
        || match json.as_bytes().first() {
            Some(b'n') => any(&["null"]),
            Some(b't' | b'f') => any(&["boolean"]),
            Some(b'[') => any(&["array"]),
            Some(b'{') => any(&["object"]),
            Some(b'"') | None => false,
            Some(_) => any(&["number", "integer"]),
        }
}

#[cfg(test)]
mod tests {
    use macmlx_inference::ToolDefinition;
    use serde_json::json;

    use super::*;
    use crate::Tools;

    #[test]
    fn values_are_what_their_schema_says() {
        let tools = Tools::new([ToolDefinition {
            name: "f".into(),
            description: None,
            parameters: json!({
                "$defs": {"size": {"type": ["integer", "null"]}},
                "properties": {
                    "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"},
                    "b": {"type": "boolean"}, "o": {"type": "object"}, "a": {"type": "array"},
                    "u": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                    "r": {"$ref": "#/$defs/size"}, "e": {"enum": ["1", "2"]}, "x": {},
                    "z": {"type": "string", "nullable": true}, "loop": {"$ref": "#"},
                },
            }),
            strict: false,
        }]);
        let cases = [
            ("s", "12", "\"12\""),
            ("s", "null", "\"null\""),
            ("s", "{\"a\": 1}", "\"{\\\"a\\\": 1}\""),
            ("i", " 12\n", "12"),
            ("i", "many", "\"many\""),
            ("n", "1e3", "1e3"),
            ("b", "True", "true"),
            ("b", "false", "false"),
            ("b", "1", "\"1\""),
            ("o", "{\"a\":  1}", "{\"a\":  1}"),
            ("o", "{a}", "\"{a}\""),
            ("a", "[1, 2]", "[1, 2]"),
            ("u", "12", "12"),
            ("u", "twelve", "\"twelve\""),
            ("u", "\"q\"", "\"\\\"q\\\"\""),
            ("r", "None", "null"),
            ("r", "7", "7"),
            ("e", "1", "\"1\""),
            ("x", "1.5", "1.5"),
            ("x", "a b", "\"a b\""),
            ("z", "null", "null"),
            ("z", "nil", "\"nil\""),
            ("loop", "1", "1"),
            ("unknown", "[]", "[]"),
        ];
        for (parameter, text, json) in cases {
            assert_eq!(
                write_as_json(text, &tools.types("f", parameter)),
                json,
                "{parameter} {text}"
            );
        }
    }
}
