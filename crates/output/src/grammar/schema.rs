//! JSON schemas: what is enforced of them, and where one cannot be.

use llguidance::{GrammarBuilder, JsonCompileOptions, api::ParserLimits};
use macmlx_inference::ToolDefinition;
use serde_json::{Map, Value, json};

use super::{brief, plain, prepare::prepare};

/// Where llguidance looks for options; a client's own are not ours to follow.
const OPTIONS: &str = "x-guidance";

/// Keywords whose members, by name or position, are schemas themselves.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
const LISTS: [&str; 5] = ["prefixItems", "anyOf", "oneOf", "allOf", "items"];
const SINGLE: [&str; 3] = ["items", "additionalProperties", "additionalItems"];

/// Subschemas compiled in search of those that cannot be enforced, and bytes of schemas: each
/// carries all that it may refer to.
const SEARCH_LIMIT: usize = 600;
const SEARCH_LIMIT_BYTES: usize = 4_000_000;

/// The schema with our own options in it.
pub(super) fn with_options(schema: &Value, is_lenient: bool) -> Value {
    match prepare(schema) {
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
    let call = |mut arguments: Value| {
        rebase(&mut arguments, &format!("#/properties/{arguments_key}"));
        json!({
            "type": "object",
            "properties": {name_key: {"const": tool.name}, arguments_key: arguments},
            "required": [name_key, arguments_key],
            "additionalProperties": false,
        })
    };
    let schema = arguments(tool);
    if tool.strict {
        return with_options(&call(schema), false);
    }
    let any = json!({"type": "object"});
    let schema = loosen(&schema).unwrap_or_else(|| any.clone());
    enforceable(&call(schema), false, &call(any))
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
    loosen(schema).map_or_else(
        || with_options(otherwise, false),
        |schema| with_options(&schema, true),
    )
}

/// The schema without what cannot be enforced even in part: of each subschema that fails, as few
/// keywords as possible are left out. `None`: nothing can be enforced.
pub(super) fn loosen(schema: &Value) -> Option<Value> {
    let mut schema = prepare(&plain::loosely(schema));
    let mut left = budget(&schema);
    while let Err(message) = compile(&with_options(&schema, true)) {
        let place = locate(&schema, message, &mut left, true);
        let failing = schema.pointer(&place.path)?.clone();
        if left == 0 || failing.as_object().is_some_and(Map::is_empty) {
            return None;
        }
        let root = schema.clone();
        let looser = looser(&failing).into_iter().find(|looser| {
            left = left.saturating_sub(1);
            left > 0 && compile(&alone(looser, &root, true)).is_ok()
        })?;
        *schema.pointer_mut(&place.path)? = looser;
    }
    Some(schema)
}

/// How many subschemas of a schema may be compiled.
fn budget(schema: &Value) -> usize {
    (SEARCH_LIMIT_BYTES / schema.to_string().len().max(1)).clamp(20, SEARCH_LIMIT)
}

/// What a subschema may be loosened to, the strictest first.
fn looser(schema: &Value) -> Vec<Value> {
    let any = json!({});
    let Value::Object(keywords) = schema else {
        return vec![any];
    };
    let without = keywords.keys().map(|key| {
        let mut kept = keywords.clone();
        kept.remove(key);
        Value::Object(kept)
    });
    let of_type = keywords.get("type").map(|name| json!({"type": name}));
    without.chain(of_type).chain([any]).collect()
}

/// Whether a schema can be enforced; the error names the keyword and its place.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let Err(message) = compile(&with_options(schema, false)) else {
        return Ok(());
    };
    let found = locate(schema, message, &mut budget(schema), false);
    let path = if found.path.is_empty() {
        "/"
    } else {
        &found.path
    };
    Err(format!("{} (at `{path}`)", keyword(&found.message)))
}

fn compile(schema: &Value) -> Result<(), String> {
    let mut schema = schema.clone();
    let options = match &mut schema {
        Value::Object(keywords) => keywords.remove(OPTIONS),
        _ => None,
    };
    let options: JsonCompileOptions = options
        .and_then(|options| macmlx_json::read(&options).ok())
        .unwrap_or_default();
    let builder = GrammarBuilder::new(None, ParserLimits::default());
    let compiled = llguidance::panic_utils::catch_unwind(std::panic::AssertUnwindSafe(|| {
        options.json_to_llg_no_validate(builder, schema)
    }));
    compiled
        .map(drop)
        .map_err(|error| brief(&error.to_string()).to_owned())
}

/// A subschema that fails.
struct Failing {
    /// A JSON pointer.
    path: String,
    message: String,
}

/// The deepest subschema that fails on its own, and how. `left` counts the subschemas that may still
/// be compiled.
fn locate(root: &Value, message: String, left: &mut usize, is_lenient: bool) -> Failing {
    let (mut schema, mut path, mut message) = (root, String::new(), message);
    'deeper: loop {
        let mut children = children(schema);
        if is_lenient {
            // To loosen a definition loosens less than to loosen all that refers to it.
            children.reverse();
        }
        for (step, child) in children {
            if *left == 0 {
                break 'deeper;
            }
            *left -= 1;
            if let Err(deeper) = compile(&alone(child, root, is_lenient)) {
                (schema, message) = (child, deeper);
                path.push_str(&step);
                continue 'deeper;
            }
        }
        break;
    }
    Failing { path, message }
}

/// A subschema as a document of its own, in which it refers to what it referred to in `root`.
fn alone(schema: &Value, root: &Value, is_lenient: bool) -> Value {
    const ROOT: &str = "macmlx-root";
    let (mut alone, mut root) = (schema.clone(), root.clone());
    let place = format!("#/$defs/{ROOT}");
    rebase(&mut alone, &place);
    if let Value::Object(keywords) = &mut alone {
        if let Some(dialect) = root.get("$schema") {
            keywords.insert("$schema".into(), dialect.clone());
        }
        rebase(&mut root, &place);
        keywords.insert("$defs".into(), json!({ROOT: root}));
    }
    with_options(&alone, is_lenient)
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
    fn one_subschema_loosens_alone() {
        let look = json!({"type": "string", "pattern": "(?=a)", "minLength": 2});
        let kept = |schema: Value| loosen(&schema).unwrap();
        let number = json!({"type": "number"});
        for (schema, place, expected) in [
            (
                json!({"properties": {"a": {"anyOf": [number, look]}, "b": number}}),
                "/properties/a/anyOf/1",
                json!({"type": "string", "minLength": 2}),
            ),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": look}}),
                "/$defs/x",
                json!({"type": "string", "minLength": 2}),
            ),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/gone", "title": "A"}, "b": number}}),
                "/properties/a",
                json!({"title": "A"}),
            ),
            (
                json!({"properties": {"a": {"type": "string", "enum": [1, 2]}, "b": number},
                       "required": ["a"]}),
                "/properties/a",
                json!({"enum": [1, 2]}),
            ),
            (
                json!({"properties": {"a": {"type": "text"}, "b": number}}),
                "/properties/a",
                json!({}),
            ),
            (
                json!({"properties": {"a": {"$ref": "#/properties/b"}, "b": number, "c": look}}),
                "/properties/a",
                json!({"$ref": "#/properties/b"}),
            ),
        ] {
            let found = kept(schema.clone());
            assert_eq!(found.pointer(place), Some(&expected), "{schema} {found}");
            let other = schema.pointer("/properties/b");
            assert_eq!(found.pointer("/properties/b"), other, "{schema}");
            assert_eq!(compile(&with_options(&found, true)), Ok(()), "{schema}");
        }
        // A whole that is none.
        let root = kept(json!({"properties": {"a": {"type": "string"}}, "required": "a"}));
        assert_eq!(root["properties"]["a"], json!({"type": "string"}));
    }

    #[test]
    fn a_call_keeps_what_can_be_had_of_its_arguments() {
        let tool = ToolDefinition {
            name: "f".into(),
            description: None,
            parameters: json!({
                "type": "object", "required": ["n"], "additionalProperties": false,
                "properties": {
                    "n": {"$ref": "#/$defs/n"},
                    "d": {"type": "string", "pattern": "(?!a)"},
                },
                "$defs": {"n": {"type": "integer"}},
            }),
            strict: false,
        };
        let call = of_call(&tool, "name", "arguments");
        let arguments = &call["properties"]["arguments"];
        assert_eq!(arguments["properties"]["d"], json!({"type": "string"}));
        assert_eq!(arguments["required"], json!(["n"]));
        let place = "#/properties/arguments/$defs/n";
        assert_eq!(arguments["properties"]["n"]["$ref"], place);
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
