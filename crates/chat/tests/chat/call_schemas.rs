//! Schemas of tools, with arguments.

use serde_json::{Value, json};

/// A schema, arguments that it allows and some that it does not.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) schema: Value,
    pub(crate) good: Vec<Value>,
    pub(crate) bad: Vec<Value>,
}

pub(crate) fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

pub(crate) fn cases() -> Vec<Case> {
    let case = |name, schema, good: Vec<Value>, bad: Vec<Value>| Case {
        name,
        schema,
        good,
        bad,
    };
    vec![
        case(
            "nothing",
            object(&json!({}), &[]),
            vec![json!({})],
            vec![json!({"x": 1})],
        ),
        case(
            "text",
            object(&json!({"s": {"type": "string"}}), &["s"]),
            vec![
                json!({"s": "a b"}),
                json!({"s": ""}),
                json!({"s": "line 1\nline \"2\" 'x'"}),
                json!({"s": "12"}),
                json!({"s": "Zürich 👋 {a: [1]} </ <par <|"}),
            ],
            vec![json!({}), json!({"s": "x", "t": "y"})],
        ),
        case(
            "choice",
            object(
                &json!({"e": {"type": "string", "enum": ["north", "north west"]}}),
                &["e"],
            ),
            vec![json!({"e": "north"}), json!({"e": "north west"})],
            vec![json!({"e": "east"}), json!({"e": "north wes"})],
        ),
        case(
            "numbers",
            object(
                &json!({"i": {"type": "integer", "minimum": 0}, "f": {"type": "number"}}),
                &["i"],
            ),
            vec![json!({"i": 7, "f": -1.5}), json!({"i": 0})],
            vec![json!({"i": -1}), json!({"i": "many"}), json!({"f": 1.5})],
        ),
        case(
            "truth",
            object(
                &json!({"b": {"type": "boolean"}, "z": {"type": "null"}}),
                &["b"],
            ),
            vec![json!({"b": true}), json!({"b": false, "z": null})],
            vec![json!({"b": "yes"}), json!({"b": 1})],
        ),
        case(
            "nested",
            object(
                &json!({"o": object(
                    &json!({"k": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                           "b": {"type": "boolean"}}),
                    &["k"],
                )}),
                &["o"],
            ),
            vec![
                json!({"o": {"k": ["a", "b, \"c\""]}}),
                json!({"o": {"k": ["</parameter>"], "b": true}}),
            ],
            vec![
                json!({"o": {"k": []}}),
                json!({"o": {"k": [1]}}),
                json!({"o": "text"}),
                json!({"o": {"k": ["a"], "x": 1}}),
            ],
        ),
        case(
            "lists",
            object(
                &json!({"a": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
                       "m": {"type": "array", "items": {"type": ["string", "null"]}}}),
                &[],
            ),
            vec![
                json!({"a": [1, -2]}),
                json!({"a": [], "m": ["x", null, "]"]}),
                json!({}),
            ],
            vec![
                json!({"a": [1, 2, 3]}),
                json!({"a": ["x"]}),
                json!({"m": [1]}),
            ],
        ),
        case(
            "definitions",
            json!({
                "type": "object", "additionalProperties": false, "required": ["r"],
                "properties": {"r": {"$ref": "#/$defs/size"}, "t": {"$ref": "#/$defs/tree"}},
                "$defs": {
                    "size": {"enum": ["s", "m", "l"]},
                    "tree": object(
                        &json!({"left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}}),
                        &["left"],
                    ),
                },
            }),
            vec![
                json!({"r": "m"}),
                json!({"r": "s", "t": {"left": {"left": null}}}),
            ],
            vec![json!({"r": "xl"}), json!({"r": "s", "t": {"left": 1}})],
        ),
        case(
            "mixed types",
            object(
                &json!({
                    "n": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
                    "u": {"type": ["integer", "string"]},
                    "l": {"anyOf": [{"type": "string"},
                                    {"type": "array", "items": {"type": "string"}}]},
                    "e": {"enum": ["a", 1, null]},
                }),
                &["n", "u"],
            ),
            vec![
                json!({"n": null, "u": 12}),
                json!({"n": "text", "u": "twelve", "l": ["a", "b"]}),
                json!({"n": "nul", "u": "12a", "l": "a", "e": 1}),
                json!({"n": "x", "u": 1, "e": "a"}),
            ],
            vec![
                json!({"n": "x", "u": 1.5}),
                json!({"n": "x", "u": 1, "e": 2}),
                json!({"n": "x", "u": 1, "e": "b"}),
            ],
        ),
        case(
            "patterns",
            object(
                &json!({
                    "p": {"type": "string", "pattern": "^[a-z]+-\\d{2}$"},
                    "q": {"type": "string", "pattern": "[0-9]"},
                    "l": {"type": "string", "minLength": 2, "maxLength": 4},
                }),
                &[],
            ),
            vec![
                json!({"p": "ab-12"}),
                json!({"q": "a 1 b", "l": "äöü"}),
                json!({"l": "a\nb"}),
            ],
            vec![
                json!({"p": "ab-1"}),
                json!({"q": "none"}),
                json!({"l": "a"}),
                json!({"l": "abcde"}),
            ],
        ),
        case(
            "anything",
            object(&json!({"x": {}}), &["x"]),
            vec![
                json!({"x": 1}),
                json!({"x": [1, {"a": "b"}]}),
                json!({"x": null}),
            ],
            vec![json!({})],
        ),
        case(
            "any names",
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            vec![json!({}), json!({"a": 1, "b": 2})],
            vec![json!({"a": "x"})],
        ),
        // Of the object as a whole, so that no format can write it in its own way.
        case(
            "either of two",
            json!({"anyOf": [
                object(&json!({"a": {"type": "string"}}), &["a"]),
                object(&json!({"b": {"type": "string"}}), &["b"]),
            ], "type": "object"}),
            vec![],
            vec![json!({"c": "x"})],
        ),
        case(
            "names that are no words",
            object(
                &json!({"a b": {"type": "string"}, "c\"d": {"type": "integer"}}),
                &["a b"],
            ),
            vec![],
            vec![json!({})],
        ),
        case(
            "closing markers",
            object(
                &json!({"s": {"type": "string", "enum": ["</parameter>", "</arg_value>", "\n"]},
                       "o": {"type": "array", "items": {"type": "string"}}}),
                &["s"],
            ),
            vec![],
            vec![json!({"s": "x"})],
        ),
    ]
}
