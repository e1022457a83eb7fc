//! Schemas as tools write them in the plain words of JSON Schema, without what demands nothing.

use serde_json::{Map, Value, json};

/// The names of types; some generators write them in capitals.
const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "string", "integer",
];

/// Keywords whose members are schemas by name.
const MAPS: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// Keywords whose value is a schema, or several in a list.
const SCHEMAS: [&str; 16] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// Keywords that say something to people only.
const NOTES: [&str; 11] = [
    "title",
    "description",
    "$comment",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
];

/// Schemas within schemas are looked at no deeper than this.
const DEPTH_LIMIT: usize = 128;

/// The schema, meaning the same. What is `null` where JSON Schema has no `null` counts as absent,
/// `nullable` is `OpenAPI`'s.
pub(crate) fn schema(schema: &Value) -> Value {
    plain(schema, DEPTH_LIMIT, false)
}

/// The same, and where a type has none of the values that are listed, the values count.
pub(super) fn loosely(schema: &Value) -> Value {
    plain(schema, DEPTH_LIMIT, true)
}

fn plain(schema: &Value, depth: usize, is_loose: bool) -> Value {
    let (Value::Object(keywords), Some(depth)) = (schema, depth.checked_sub(1)) else {
        return match schema {
            Value::Null => Value::Object(Map::new()),
            other => other.clone(),
        };
    };
    let mut kept: Map<String, Value> = keywords
        .iter()
        .filter(|(keyword, value)| !value.is_null() || *keyword == "const")
        .map(|(keyword, value)| (keyword.clone(), member(keyword, value, depth, is_loose)))
        .collect();
    allow_null(&mut kept);
    drop_impossible(&mut kept, is_loose);
    drop_idle(&mut kept);
    Value::Object(kept)
}

fn member(keyword: &str, value: &Value, depth: usize, is_loose: bool) -> Value {
    match value {
        Value::Object(members) if MAPS.contains(&keyword) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(name, schema)| (name.clone(), plain(schema, depth, is_loose)))
                    .collect(),
            )
        }
        Value::Array(items) if SCHEMAS.contains(&keyword) => Value::Array(
            items
                .iter()
                .map(|item| plain(item, depth, is_loose))
                .collect(),
        ),
        value if SCHEMAS.contains(&keyword) => plain(value, depth, is_loose),
        Value::String(name) if keyword == "type" => type_name(name),
        Value::Array(names) if keyword == "type" => {
            let names = names.iter();
            Value::Array(
                names
                    .map(|name| name.as_str().map_or_else(|| name.clone(), type_name))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

fn type_name(name: &str) -> Value {
    let known = TYPES.iter().find(|known| known.eq_ignore_ascii_case(name));
    Value::from(known.copied().unwrap_or(name))
}

/// Takes `OpenAPI`'s `nullable` away and says what it does.
fn allow_null(keywords: &mut Map<String, Value>) {
    if keywords.remove("nullable") != Some(Value::Bool(true)) {
        return;
    }
    if let Some(name @ Value::String(_)) = keywords.get_mut("type") {
        *name = json!([name.take(), "null"]);
    } else if let Some(Value::Array(names)) = keywords.get_mut("type") {
        names.push("null".into());
        names.dedup();
    }
    if let Some(Value::Array(values)) = keywords.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(Value::Array(branches)) = keywords.get_mut("anyOf") {
        branches.push(json!({"type": "null"}));
    }
}

/// Leaves out values that the type does not have. Where none would be left, the type is left out if
/// the schema need not be strict.
fn drop_impossible(keywords: &mut Map<String, Value>, is_loose: bool) {
    let names: Vec<String> = match keywords.get("type") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        }
        _ => return,
    };
    let is_possible = |value: &Value| names.iter().any(|name| is_of_type(value, name));
    match keywords.get_mut("enum") {
        Some(Value::Array(values)) if values.iter().any(is_possible) => {
            values.retain(is_possible);
        }
        Some(Value::Array(values)) if is_loose && !values.is_empty() => {
            keywords.remove("type");
        }
        _ => {}
    }
    if is_loose
        && keywords
            .get("const")
            .is_some_and(|value| !is_possible(value))
    {
        keywords.remove("type");
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

/// Leaves out keywords that every value satisfies.
fn drop_idle(keywords: &mut Map<String, Value>) {
    let is_idle = |keywords: &Map<String, Value>, keyword: &str| {
        keywords.get(keyword).is_none_or(demands_nothing)
    };
    if !keywords.contains_key("if") || is_idle(keywords, "then") && is_idle(keywords, "else") {
        for keyword in ["if", "then", "else"] {
            keywords.remove(keyword);
        }
    }
    let is_zero = keywords.get("minContains").and_then(Value::as_f64) == Some(0.0);
    if !keywords.contains_key("contains") || is_zero && !keywords.contains_key("maxContains") {
        for keyword in ["contains", "minContains", "maxContains"] {
            keywords.remove(keyword);
        }
    }
    keywords.retain(|keyword, value| !is_kept_by_all(keyword, value));
}

/// Whether every value satisfies a keyword of this value.
fn is_kept_by_all(keyword: &str, value: &Value) -> bool {
    match keyword {
        "uniqueItems" | "exclusiveMinimum" | "exclusiveMaximum" | "not" => *value == false,
        "minItems" | "minLength" | "minProperties" => value.as_f64() == Some(0.0),
        // In older drafts it says so of the property itself.
        "required" => *value == false || value.as_array().is_some_and(Vec::is_empty),
        "propertyNames" => demands_nothing(value) || is_of_strings(value),
        "additionalItems" | "unevaluatedItems" | "unevaluatedProperties" => demands_nothing(value),
        "dependentRequired" => members(value, |names| names.as_array().is_some_and(Vec::is_empty)),
        "dependentSchemas" => members(value, demands_nothing),
        "dependencies" => members(value, |what| {
            what.as_array().is_some_and(Vec::is_empty) || demands_nothing(what)
        }),
        // Properties of a pattern are exempt from `additionalProperties`, so only none is nothing.
        "patternProperties" => members(value, |_| false),
        "allOf" => value
            .as_array()
            .is_some_and(|branches| branches.iter().all(demands_nothing)),
        "pattern" => value == "",
        "deprecated" | "contentSchema" | "discriminator" | "example" | "externalDocs" | "xml" => {
            true
        }
        _ => false,
    }
}

/// Whether all members of an object are so; there may be none.
fn members(value: &Value, is_so: impl Fn(&Value) -> bool) -> bool {
    value
        .as_object()
        .is_some_and(|members| members.values().all(is_so))
}

/// Whether every value satisfies a schema.
fn demands_nothing(schema: &Value) -> bool {
    match schema {
        Value::Bool(allows) => *allows,
        Value::Object(keywords) => keywords.keys().all(|key| is_note(key)),
        _ => false,
    }
}

/// Names are strings whatever is said.
fn is_of_strings(schema: &Value) -> bool {
    schema.as_object().is_some_and(|keywords| {
        keywords
            .iter()
            .all(|(keyword, value)| match keyword.as_str() {
                "type" => {
                    *value == "string"
                        || value
                            .as_array()
                            .is_some_and(|names| names.contains(&"string".into()))
                }
                keyword => is_note(keyword),
            })
    })
}

fn is_note(keyword: &str) -> bool {
    NOTES.contains(&keyword) || keyword.starts_with("x-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::schema::check;

    #[test]
    fn what_demands_nothing_is_left_out() {
        for keywords in [
            json!({"propertyNames": {"type": "string"}}),
            json!({"propertyNames": {"type": ["string", "null"], "description": "a name"}}),
            json!({"propertyNames": {}}),
            json!({"propertyNames": true}),
            json!({"uniqueItems": false}),
            json!({"minItems": 0, "minLength": 0, "minProperties": 0.0}),
            json!({"required": []}),
            json!({"required": false}),
            json!({"exclusiveMinimum": false, "exclusiveMaximum": false}),
            json!({"not": false}),
            json!({"dependentRequired": {}}),
            json!({"dependentRequired": {"a": []}}),
            json!({"dependentSchemas": {"a": true, "b": {}}}),
            json!({"dependencies": {"a": [], "b": {}}}),
            json!({"if": {"type": "string"}}),
            json!({"then": false, "else": false}),
            json!({"if": {"type": "string"}, "then": true, "else": {}}),
            json!({"contains": {"type": "string"}, "minContains": 0}),
            json!({"minContains": 2, "maxContains": 3}),
            json!({"patternProperties": {}}),
            json!({"additionalItems": true, "unevaluatedItems": {}, "unevaluatedProperties": true}),
            json!({"allOf": []}),
            json!({"allOf": [true, {"description": "any"}]}),
            json!({"pattern": ""}),
            json!({"deprecated": true, "discriminator": {"propertyName": "k"}}),
            json!({"nullable": false}),
            // Nothing where null is.
            json!({"required": null, "properties": null, "enum": null, "description": null,
                   "items": null, "default": null, "type": null, "$ref": null, "pattern": null,
                   "additionalProperties": null, "anyOf": null, "minLength": null}),
        ] {
            assert_eq!(schema(&keywords), json!({}), "{keywords}");
            assert_eq!(check(&keywords), Ok(()), "{keywords}");
            let inside = json!({"type": "array", "items": {"properties": {"a": keywords}}});
            assert_eq!(check(&inside), Ok(()), "{inside}");
        }
    }

    #[test]
    fn what_demands_something_stays() {
        for keywords in [
            json!({"propertyNames": {"pattern": "^a"}}),
            json!({"propertyNames": {"type": "integer"}}),
            json!({"uniqueItems": true}),
            json!({"not": {}}),
            json!({"not": true}),
            json!({"required": ["a"]}),
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"if": true, "then": false}),
            json!({"contains": {"type": "string"}}),
            json!({"contains": {"type": "string"}, "minContains": 0, "maxContains": 1}),
            json!({"unevaluatedProperties": false}),
            json!({"allOf": [{"type": "string"}]}),
            json!({"patternProperties": {"^a": {}}, "additionalProperties": false}),
            json!({"const": null}),
            json!({"enum": [null]}),
        ] {
            assert_eq!(schema(&keywords), keywords);
        }
    }

    #[test]
    fn words_of_other_vocabularies_are_translated() {
        for (sent, plain) in [
            (
                json!({"type": "OBJECT", "properties": {"type": {"type": "STRING"}}}),
                json!({"type": "object", "properties": {"type": {"type": "string"}}}),
            ),
            (
                json!({"type": ["Integer", "NULL"]}),
                json!({"type": ["integer", "null"]}),
            ),
            (
                json!({"type": "string", "nullable": true, "enum": ["a"]}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (
                json!({"anyOf": [{"type": "integer"}], "nullable": true}),
                json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            ),
            (
                json!({"type": "string", "enum": ["a", 1, null]}),
                json!({"type": "string", "enum": ["a"]}),
            ),
            (
                json!({"properties": {"a": null, "nullable": {"type": "NUMBER"}}}),
                json!({"properties": {"a": {}, "nullable": {"type": "number"}}}),
            ),
            (
                json!({"enum": ["STRING", {"type": "STRING"}], "default": {"minItems": 0}}),
                json!({"enum": ["STRING", {"type": "STRING"}], "default": {"minItems": 0}}),
            ),
        ] {
            assert_eq!(schema(&sent), plain);
            assert_eq!(schema(&plain), plain);
        }
    }
}
