//! A tool's arguments taken apart into parameters, for formats that write them one by one.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::pattern::Pattern;
use crate::output::parameter_types;

/// Keywords that say something about the arguments as a whole.
const OF_THE_WHOLE: [&str; 19] = [
    "$ref",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "enum",
    "const",
    "$dynamicRef",
];

/// Keywords that restrict nothing.
const ANNOTATIONS: [&str; 11] = [
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$defs",
    "definitions",
];

const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// How deep schemas are followed through references and alternatives.
const DEPTH_LIMIT: usize = 8;

/// Parameters in the order in which they are written.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    pub listed: Vec<Parameter>,
    /// What parameters are like whose names are not listed; `None`: there are none.
    pub others: Option<Parameter>,
}

/// One argument, or one member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    pub name: String,
    /// Complete: it has the definitions that it refers to.
    pub schema: Value,
    pub is_required: bool,
    is_strict: bool,
    /// Types that the reader of bare text goes by; empty: any.
    pub types: BTreeSet<String>,
}

impl Parameters {
    /// Those of an object's schema inside of `root`. What is not strict may lose what cannot be
    /// said of single parameters.
    pub fn of(object: &Value, root: &Value, is_strict: bool) -> Option<Self> {
        let keywords = match object {
            Value::Object(keywords) => keywords.clone(),
            Value::Null | Value::Bool(true) => Map::new(),
            _ => return None,
        };
        let is_object = keywords.get("type").is_none_or(|name| *name == "object");
        let is_whole = OF_THE_WHOLE.iter().any(|key| keywords.contains_key(*key));
        let may_loosen = !is_strict && keywords.contains_key("properties");
        if !is_object || (is_whole && !may_loosen) {
            return None;
        }
        let complete = |schema: &Value, root: &Value| {
            complete(schema, root).or_else(|| (!is_strict).then(|| json!({})))
        };
        let none = Map::new();
        let properties = match keywords.get("properties") {
            None => &none,
            Some(properties) => properties.as_object()?,
        };
        let required: Vec<&str> = match keywords.get("required") {
            None => Vec::new(),
            Some(names) => names
                .as_array()?
                .iter()
                .map(Value::as_str)
                .collect::<Option<_>>()?,
        };
        let others = match keywords.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(schema) => Some(complete(schema, root)?),
            // A tool that says what it takes is given that; one that says nothing takes anything.
            None => properties.is_empty().then(|| json!({})),
        };
        let undescribed = required
            .iter()
            .filter(|name| !properties.contains_key(**name));
        let undescribed: Vec<(&str, Value)> = undescribed
            .map(|name| Some((*name, others.clone()?)))
            .collect::<Option<_>>()?;
        let listed = properties
            .iter()
            .filter(|(name, schema)| {
                **schema != Value::Bool(false) || required.contains(&name.as_str())
            })
            .map(|(name, schema)| {
                Some(Parameter {
                    name: name.clone(),
                    schema: complete(schema, root)?,
                    is_required: required.contains(&name.as_str()),
                    is_strict,
                    types: parameter_types(schema, root)
                        .into_iter()
                        .map(str::to_owned)
                        .collect(),
                })
            })
            .collect::<Option<Vec<_>>>()?;
        let undescribed = undescribed.into_iter().map(|(name, schema)| Parameter {
            name: name.into(),
            schema,
            is_required: true,
            is_strict,
            types: BTreeSet::new(),
        });
        let others = others.clone().map(|schema| Parameter {
            name: String::new(),
            schema,
            is_required: false,
            is_strict,
            types: BTreeSet::new(),
        });
        Some(Self {
            listed: listed.into_iter().chain(undescribed).collect(),
            others,
        })
    }
}

impl Parameter {
    /// Whether its tool is strict.
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Another schema with the definitions of this one.
    pub fn with_definitions(&self, schema: Value) -> Value {
        complete(&schema, &self.schema).unwrap_or(schema)
    }

    /// Whether anything will do.
    pub fn is_anything(&self) -> bool {
        is_unrestricted(&self.schema)
    }

    /// The kinds of values the schema allows; more where it is not strict and combines them in a
    /// way that is not looked into here. `None`: it does so and is strict.
    pub fn alternatives(&self) -> Option<Vec<Alternative>> {
        let mut found = Vec::new();
        match add_alternatives(&self.schema, &self.schema, DEPTH_LIMIT, &mut found) {
            Some(()) => Some(found),
            None if self.is_strict => None,
            None => self
                .types
                .iter()
                .map(|name| of_type(name, &Map::new()))
                .collect(),
        }
    }
}

/// The items of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Items {
    pub item: Parameter,
    /// At least and at most so many.
    pub range: (u64, Option<u64>),
}

impl Items {
    /// Those of a list's schema. `None`: not all items are alike, or something is said of the list
    /// as a whole.
    pub fn of(schema: &Value, is_strict: bool) -> Option<Self> {
        let keywords = schema.as_object()?;
        let known = ["type", "items", "minItems", "maxItems"];
        let is_known = |key: &String| {
            known.contains(&key.as_str())
                || ANNOTATIONS.contains(&key.as_str())
                || key.starts_with("x-")
        };
        if !keywords.keys().all(is_known) {
            return None;
        }
        let bound = |key: &str| match keywords.get(key) {
            None => Some(None),
            Some(bound) => bound.as_u64().map(Some),
        };
        let item = keywords.get("items")?;
        let (min, max) = (bound("minItems")?.unwrap_or(0), bound("maxItems")?);
        if !item.is_object() || max.is_some_and(|max| max < min) {
            return None;
        }
        Some(Self {
            item: Parameter {
                name: String::new(),
                schema: complete(item, schema)?,
                is_required: true,
                is_strict,
                types: parameter_types(item, schema)
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            },
            range: (min, max),
        })
    }
}

/// Values of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Alternative {
    /// Strings of a pattern, and their schema.
    Strings(Pattern, Value),
    /// One of these strings.
    Listed(Vec<String>),
    /// Any integer, any number, true or false, null.
    Integer,
    Number,
    Boolean,
    Null,
    /// One value that is no string.
    Value(Value),
    /// Lists and objects, or numbers within limits.
    Other(Value),
}

impl Alternative {
    /// Its schema, for formats that write it as JSON.
    pub fn schema(&self, root: &Value) -> Value {
        let schema = match self {
            Self::Listed(texts) => json!({ "enum": texts }),
            Self::Integer => json!({"type": "integer"}),
            Self::Number => json!({"type": "number"}),
            Self::Boolean => json!({"type": "boolean"}),
            Self::Null => json!({"type": "null"}),
            Self::Value(value) => json!({ "const": value }),
            Self::Strings(_, schema) | Self::Other(schema) => schema.clone(),
        };
        complete(&schema, root).unwrap_or(schema)
    }
}

fn is_unrestricted(schema: &Value) -> bool {
    match schema {
        Value::Bool(is_anything) => *is_anything,
        Value::Object(keywords) => keywords
            .keys()
            .all(|key| ANNOTATIONS.contains(&key.as_str()) || key.starts_with("x-")),
        _ => false,
    }
}

/// A schema with the definitions of `root` that it needs. `None`: it refers to something else.
fn complete(schema: &Value, root: &Value) -> Option<Value> {
    let mut schema = match schema {
        Value::Bool(true) => json!({}),
        Value::Bool(false) => json!({"not": {}}),
        other => other.clone(),
    };
    let mut refs = Vec::new();
    collect_refs(&schema, &mut refs);
    if refs.is_empty() {
        return Some(schema);
    }
    for key in DEFINITIONS {
        if let (Some(definitions), Some(keywords)) = (root.get(key), schema.as_object_mut()) {
            collect_refs(definitions, &mut refs);
            keywords.insert(key.into(), definitions.clone());
        }
    }
    let is_definition =
        |target: &str| target.starts_with("#/$defs/") || target.starts_with("#/definitions/");
    refs.iter()
        .all(|target| is_definition(target))
        .then_some(schema)
}

fn collect_refs(schema: &Value, refs: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                refs.push(target.into());
            }
            members.values().for_each(|value| collect_refs(value, refs));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_refs(value, refs)),
        _ => {}
    }
}

fn add_alternatives(
    schema: &Value,
    root: &Value,
    depth: usize,
    found: &mut Vec<Alternative>,
) -> Option<()> {
    let Value::Object(keywords) = schema else {
        return None;
    };
    if depth == 0 {
        return None;
    }
    let restricting: Vec<&str> = keywords
        .keys()
        .map(String::as_str)
        .filter(|key| !ANNOTATIONS.contains(key) && !key.starts_with("x-"))
        .collect();
    match restricting.as_slice() {
        ["$ref"] => {
            let target = schema["$ref"].as_str()?.strip_prefix('#')?;
            return add_alternatives(root.pointer(target)?, root, depth - 1, found);
        }
        ["anyOf" | "oneOf"] => {
            let is_exclusive = restricting == ["oneOf"];
            let mut seen = BTreeSet::new();
            for branch in schema[restricting[0]].as_array()? {
                let types = parameter_types(branch, root);
                // Where one of them only is to hold, they must be of different types.
                let is_new = !types.is_empty()
                    && types.into_iter().all(|name| {
                        let name = if name == "integer" { "number" } else { name };
                        seen.insert(name.to_owned())
                    });
                if is_exclusive && !is_new {
                    return None;
                }
                add_alternatives(branch, root, depth - 1, found)?;
            }
            return Some(());
        }
        _ => {}
    }
    let combines = ["$ref", "anyOf", "oneOf", "allOf", "not", "if"];
    if restricting.iter().any(|key| combines.contains(key)) {
        return None;
    }
    let types: Option<Vec<&str>> = match keywords.get("type") {
        None => None,
        Some(Value::String(name)) => Some(vec![name]),
        Some(names) => Some(
            names
                .as_array()?
                .iter()
                .map(Value::as_str)
                .collect::<Option<_>>()?,
        ),
    };
    let values: Option<Vec<Value>> = match (keywords.get("const"), keywords.get("enum")) {
        (Some(_), Some(_)) => return None,
        (Some(value), None) => Some(vec![value.clone()]),
        (None, Some(values)) => Some(values.as_array()?.clone()),
        (None, None) => None,
    };
    if let Some(values) = values {
        let extra = restricting.len() - usize::from(types.is_some()) - 1;
        if extra > usize::from(keywords.contains_key("nullable")) {
            return None;
        }
        let is_allowed = |value: &Value| types.as_ref().is_none_or(|types| is_of(value, types));
        let (texts, others): (Vec<Value>, Vec<Value>) = values
            .into_iter()
            .filter(is_allowed)
            .partition(Value::is_string);
        let texts: Vec<String> = texts
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        if !texts.is_empty() {
            found.push(Alternative::Listed(texts));
        }
        found.extend(others.into_iter().map(Alternative::Value));
        return Some(());
    }
    for name in types? {
        found.push(of_type(name, keywords)?);
    }
    Some(())
}

fn is_of(value: &Value, types: &[&str]) -> bool {
    types.iter().any(|name| match *name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    })
}

fn of_type(name: &str, keywords: &Map<String, Value>) -> Option<Alternative> {
    const OF_NUMBERS: [&str; 5] = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ];
    let is_limited = OF_NUMBERS.iter().any(|key| keywords.contains_key(*key));
    let whole = || {
        let mut schema = keywords.clone();
        schema.insert("type".into(), name.into());
        Value::Object(schema)
    };
    Some(match name {
        "string" => Alternative::Strings(strings(keywords)?, whole()),
        "integer" if !is_limited => Alternative::Integer,
        "number" if !is_limited => Alternative::Number,
        "integer" | "number" | "array" | "object" => Alternative::Other(whole()),
        "boolean" => Alternative::Boolean,
        "null" => Alternative::Null,
        _ => return None,
    })
}

/// The strings that a schema allows, where a regular expression can say it.
fn strings(keywords: &Map<String, Value>) -> Option<Pattern> {
    if keywords.contains_key("format") {
        return None;
    }
    let mut pattern = Pattern::any();
    let length = |key: &str| match keywords.get(key) {
        None => Some(None),
        Some(length) => length.as_u64().map(Some),
    };
    let (min, max) = (length("minLength")?, length("maxLength")?);
    if min.is_some() || max.is_some() {
        let max = max.map(|max| max.to_string()).unwrap_or_default();
        let regex = format!("(?s:.){{{},{max}}}", min.unwrap_or(0));
        pattern = Pattern::regex(&regex);
    }
    if let Some(searched) = keywords.get("pattern") {
        pattern = pattern.and(&search(searched.as_str()?)?);
    }
    Some(pattern)
}

/// Texts in which a schema's `pattern` is found. `None`: it has anchors elsewhere than at its ends.
fn search(regex: &str) -> Option<Pattern> {
    let (starts, body) = match regex.strip_prefix('^') {
        Some(body) => (true, body),
        None => (false, regex),
    };
    let is_escaped = body.len() - body.trim_end_matches(['$']).trim_end_matches('\\').len();
    let (ends, body) = match body.strip_suffix('$') {
        Some(body) if is_escaped == 1 => (true, body),
        _ => (false, body),
    };
    let mut depth = 0_usize;
    let (mut in_class, mut previous) = (false, ' ');
    let mut characters = body.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                // Word boundaries look at what is around them.
                let is_boundary = matches!(characters.next()?, 'b' | 'B' | 'A' | 'z' | 'Z');
                if is_boundary && !in_class {
                    return None;
                }
            }
            ']' => in_class = false,
            '^' if in_class && previous == '[' => {}
            '^' | '$' if !in_class => return None,
            _ if in_class => {}
            '[' => in_class = true,
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            '|' if depth == 0 && (starts || ends) => return None,
            _ => {}
        }
        previous = character;
    }
    let around = |is_anchored: bool| if is_anchored { "" } else { "(?s:.*)" };
    let regex = format!("{}(?:{body}){}", around(starts), around(ends));
    Some(Pattern::json_regex(&regex))
}
