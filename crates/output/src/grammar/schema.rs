//! JSON schemas: what is enforced of them, and where one cannot be.

use llguidance::{GrammarBuilder, JsonCompileOptions, api::ParserLimits};
use macmlx_inference::ToolDefinition;
use serde_json::{Map, Value, json};

use super::{brief, prepare::prepared};

/// Where llguidance looks for options; a client's own are not ours to follow.
const OPTIONS: &str = "x-guidance";

/// Keywords whose members, by name or position, are schemas themselves.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
const LISTS: [&str; 5] = ["prefixItems", "anyOf", "oneOf", "allOf", "items"];
const SINGLE: [&str; 3] = ["items", "additionalProperties", "additionalItems"];

/// Subschemas compiled in search of the one that cannot be enforced.
const SEARCH_LIMIT: usize = 2000;

/// The schema with our own options in it.
pub(super) fn with_options(schema: &Value, is_lenient: bool) -> Value {
    match prepared(schema) {
        Value::Object(mut keywords) => {
            keywords.insert(
                OPTIONS.into(),
                json!({
                    "whitespace_flexible": false,
                    "item_separator": ", ?",
                    "key_separator": ": ?",
                    "lenient": is_lenient,
                }),
            );
            Value::Object(keywords)
        }
        // Everything or nothing.
        Value::Bool(true) => with_options(&json!({}), is_lenient),
        other => other,
    }
}

/// Schema of a tool's arguments: always an object, and for tools that are not strict as much of
/// their schema as can be enforced.
pub(super) fn of_arguments(tool: &ToolDefinition) -> Value {
    let any = json!({"type": "object"});
    enforceable(&arguments(tool), tool.strict, &any)
}

/// Schema of a call as an object of a name and such arguments.
pub(super) fn of_call(tool: &ToolDefinition, name_key: &str, arguments_key: &str) -> Value {
    let call = |arguments: Value| {
        json!({
            "type": "object",
            "properties": {name_key: {"const": tool.name}, arguments_key: arguments},
            "required": [name_key, arguments_key],
            "additionalProperties": false,
        })
    };
    let mut schema = arguments(tool);
    rebase(&mut schema, &format!("#/properties/{arguments_key}"));
    let any = call(json!({"type": "object"}));
    enforceable(&call(schema), tool.strict, &any)
}

/// Lets a schema's references to itself hold where it is part of another one.
fn rebase(schema: &mut Value, root: &str) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(target) if key == "$ref" && target.starts_with('#') => {
                        target.replace_range(..1, root);
                    }
                    value => rebase(value, root),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, root)),
        _ => {}
    }
}

/// Whether arguments, which are always an object, can satisfy a schema at all.
pub(super) fn takes_objects(schema: &Value) -> bool {
    match &schema["type"] {
        Value::String(name) => name == "object",
        Value::Array(names) => names.iter().any(|name| name == "object"),
        _ => true,
    }
}

fn arguments(tool: &ToolDefinition) -> Value {
    match &tool.parameters {
        schema if !takes_objects(schema) => json!({"type": "object"}),
        Value::Object(keywords) if keywords.is_empty() => json!({"type": "object"}),
        Value::Object(keywords) => {
            let mut keywords = keywords.clone();
            keywords
                .entry("type")
                .or_insert_with(|| Value::from("object"));
            Value::Object(keywords)
        }
        _ => json!({"type": "object"}),
    }
}

/// The schema with our own options in it: as it stands if it `is_strict`, or else as much of it as
/// can be enforced, `otherwise` if nothing can.
pub(super) fn enforceable(schema: &Value, is_strict: bool, otherwise: &Value) -> Value {
    if is_strict {
        return with_options(schema, false);
    }
    let lenient = with_options(schema, true);
    match compile(&lenient) {
        Ok(()) => lenient,
        Err(_) => with_options(otherwise, false),
    }
}

/// Whether anything of a schema can be enforced.
pub(super) fn is_enforceable(schema: &Value) -> bool {
    compile(&with_options(schema, true)).is_ok()
}

/// Whether a schema can be enforced; the error names the keyword and its place.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let Err(message) = compile(&with_options(schema, false)) else {
        return Ok(());
    };
    let (path, message) = locate(schema, message);
    let path = if path.is_empty() { "/" } else { &path };
    Err(format!("{} (at `{path}`)", keyword(&message)))
}

fn compile(schema: &Value) -> Result<(), String> {
    let mut schema = schema.clone();
    let options = match &mut schema {
        Value::Object(keywords) => keywords.remove(OPTIONS),
        _ => None,
    };
    let options: JsonCompileOptions = options
        .and_then(|options| serde_json::from_value(options).ok())
        .unwrap_or_default();
    let builder = GrammarBuilder::new(None, ParserLimits::default());
    let compiled = llguidance::panic_utils::catch_unwind(std::panic::AssertUnwindSafe(|| {
        options.json_to_llg_no_validate(builder, schema)
    }));
    compiled
        .map(drop)
        .map_err(|error| brief(&error.to_string()).to_owned())
}

/// The deepest subschema that fails on its own, and how.
fn locate(root: &Value, message: String) -> (String, String) {
    let definitions: Map<String, Value> = ["$schema", "$defs", "definitions"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), root.get(key)?.clone())))
        .collect();
    let (mut schema, mut path, mut message) = (root, String::new(), message);
    let mut left = SEARCH_LIMIT;
    'deeper: loop {
        for (step, child) in children(schema) {
            if left == 0 {
                break 'deeper;
            }
            left -= 1;
            let mut alone = child.clone();
            if let Value::Object(keywords) = &mut alone {
                for (key, value) in &definitions {
                    keywords.entry(key).or_insert_with(|| value.clone());
                }
            }
            if let Err(deeper) = compile(&alone) {
                (schema, message) = (child, deeper);
                path.push_str(&step);
                continue 'deeper;
            }
        }
        break;
    }
    (path, message)
}

/// Subschemas with their JSON pointers below this one; definitions come last, since where they are
/// used says more.
fn children(schema: &Value) -> Vec<(String, &Value)> {
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    let single = SINGLE
        .into_iter()
        .filter_map(|key| Some((format!("/{key}"), schema.get(key)?)))
        .filter(|(_, child)| child.is_object());
    let listed = LISTS.into_iter().flat_map(|key| {
        let items = schema.get(key).and_then(Value::as_array);
        let items = items.into_iter().flatten().enumerate();
        items.map(move |(index, child)| (format!("/{key}/{index}"), child))
    });
    let mapped = MAPS.into_iter().flat_map(|key| {
        let members = schema.get(key).and_then(Value::as_object);
        let members = members.into_iter().flatten();
        members.map(move |(name, child)| (format!("/{key}/{}", escaped(name)), child))
    });
    single.chain(listed).chain(mapped).collect()
}

/// What llguidance says of a keyword, in words of ours.
fn keyword(message: &str) -> String {
    if let Some(list) = message.strip_prefix("Unimplemented keys: ") {
        let keys: Vec<String> = serde_json::from_str(list).unwrap_or_default();
        return match keys.as_slice() {
            [one] => format!("the keyword `{one}` cannot be enforced"),
            several => format!("the keywords `{}` cannot be enforced", several.join("`, `")),
        };
    }
    if let Some(format) = message.strip_prefix("Unknown format: ") {
        return format!("the `format` `{format}` cannot be enforced");
    }
    if message.starts_with("oneOf constraints") {
        return "the keyword `oneOf` cannot be enforced where one value may satisfy several of its \
                branches; `anyOf` can"
            .to_owned();
    }
    let outside = message
        .strip_prefix("Resource '")
        .and_then(|rest| rest.split_once('\''));
    match outside {
        Some((target, _)) => format!("`$ref` leads out of the schema, to `{target}`"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_enforced_is_named_with_its_place() {
        for (schema, named, place) in [
            (json!({"not": {"type": "string"}}), "`not`", "`/`"),
            (
                json!({"properties": {"a/b": {"items": {"uniqueItems": true, "type": "array"}}}}),
                "`uniqueItems`",
                "`/properties/a~1b/items`",
            ),
            (
                json!({"anyOf": [{"type": "null"}, {"type": "string", "pattern": "(?=a)"}]}),
                "look",
                "`/anyOf/1`",
            ),
            (json!({"format": "iri"}), "`iri`", "`/`"),
            (
                json!({"oneOf": [{"type": "string"}, {"minLength": 1}]}),
                "`oneOf`",
                "`/`",
            ),
            (
                json!({"items": {"$ref": "http://x.org/y"}}),
                "`http://x.org/y`",
                "`/items`",
            ),
            (
                json!({"$ref": "#/$defs/x", "$defs": {"x": {"if": true, "then": false}}}),
                "`if`, `then`",
                "`/$defs/x`",
            ),
        ] {
            let error = check(&schema).unwrap_err();
            assert!(error.contains(named) && error.contains(place), "{error}");
        }
    }

    #[test]
    fn what_people_send_can_be_enforced() {
        for schema in [
            json!({}),
            json!(true),
            json!({"type": "object", "properties": {"a": {"type": "string", "title": "A"}},
                   "required": ["a"], "additionalProperties": false}),
            json!({"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}], "$defs": {
                "cat": {"type": "object", "properties": {"is": {"const": "cat"}}, "required": ["is"]},
                "dog": {"type": "object", "properties": {"is": {"const": "dog"}}, "required": ["is"]},
            }}),
            json!({"type": "string", "format": "file-path"}),
            json!({"$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}},
                   "anyOf": [{"type": "null"}, {"$ref": "#/$defs/n"}], "x-of-a-vendor": 1}),
        ] {
            assert_eq!(check(&schema), Ok(()), "{schema}");
        }
    }

    #[test]
    fn a_clients_options_are_not_ours() {
        let lenient = json!({"not": {}, "x-guidance": {"lenient": true}});
        assert!(check(&lenient).is_err());
    }

    #[test]
    fn tools_that_are_not_strict_get_what_can_be_had() {
        let tool = |parameters: Value| ToolDefinition {
            name: "f".into(),
            description: None,
            parameters,
            strict: false,
        };
        let kept = of_arguments(&tool(json!({"properties": {"a": {"not": {}}}})));
        assert!(kept["properties"]["a"].is_object(), "{kept}");
        let broken = of_arguments(&tool(json!({"type": "object", "properties": 1})));
        assert!(broken.get("properties").is_none(), "{broken}");
        assert_eq!(of_arguments(&tool(Value::Null))["type"], "object");
    }
}
