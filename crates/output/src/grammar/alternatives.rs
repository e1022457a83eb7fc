//! The kinds of values that a schema allows, for formats that write each in its own way.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    parameters::{ANNOTATIONS, complete},
    pattern::Pattern,
};
use crate::parameter_types;

/// How deep schemas are followed through references and alternatives.
const DEPTH_LIMIT: usize = 8;

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

/// Adds what a schema inside of `root` allows. `None`: it combines values in a way that is not
/// looked into here.
pub(super) fn add(schema: &Value, root: &Value, found: &mut Vec<Alternative>) -> Option<()> {
    add_alternatives(schema, root, DEPTH_LIMIT, found)
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

pub(super) fn of_type(name: &str, keywords: &Map<String, Value>) -> Option<Alternative> {
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
