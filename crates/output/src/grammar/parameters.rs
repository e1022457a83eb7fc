//! A tool's arguments taken apart into parameters, for formats that write them one by one.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::alternatives::{self, Alternative};
use crate::parameter_types;

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
pub(super) const ANNOTATIONS: [&str; 11] = [
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
        match alternatives::add(&self.schema, &self.schema, &mut found) {
            Some(()) => Some(found),
            None if self.is_strict => None,
            None => self
                .types
                .iter()
                .map(|name| alternatives::of_type(name, &Map::new()))
                .collect(),
        }
    }
}

/// The items of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Items {
    pub(crate) item: Parameter,
    /// The lowest and the highest number of times.
    pub(crate) range: (u64, Option<u64>),
}

impl Items {
    /// Those of a list's schema. `None`: not all items are alike, or something is said of the list
    /// as a whole.
    pub(crate) fn of(schema: &Value, is_strict: bool) -> Option<Self> {
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
pub(super) fn complete(schema: &Value, root: &Value) -> Option<Value> {
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
