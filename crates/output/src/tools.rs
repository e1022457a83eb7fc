//! The tools offered to the model, as far as its output is read by them.

use std::{collections::BTreeSet, sync::Arc};

use macmlx_inference::ToolDefinition;
use serde_json::Value;

use crate::grammar::plain;

/// How deep schemas are followed through `$ref` and `anyOf`.
const DEPTH_LIMIT: usize = 8;

/// The offered tools; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tools(Arc<[ToolDefinition]>);

impl Tools {
    /// Their schemas are kept in plain words, which mean the same.
    pub fn new(tools: impl IntoIterator<Item = ToolDefinition>) -> Self {
        let in_plain_words = tools.into_iter().map(|tool| ToolDefinition {
            parameters: plain::schema(&tool.parameters),
            ..tool
        });
        Self(in_plain_words.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a tool of this name is offered.
    pub fn offers(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether a tool is offered whose name begins so.
    pub(super) fn offers_one_that_begins(&self, begun: &str) -> bool {
        self.0.iter().any(|tool| tool.name.starts_with(begun))
    }

    pub fn iter(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.0.iter()
    }

    /// The name of a tool's parameter by its place in the schema.
    pub(super) fn parameter_at(&self, tool: &str, index: usize) -> Option<&str> {
        let properties = self.find(tool)?.parameters["properties"].as_object()?;
        properties.keys().nth(index).map(String::as_str)
    }

    /// The JSON types a parameter may have; empty when the schema does not say.
    pub(super) fn types(&self, tool: &str, parameter: &str) -> BTreeSet<&str> {
        self.find(tool).map_or_else(BTreeSet::new, |tool| {
            let root = &tool.parameters;
            parameter_types(&root["properties"][parameter], root)
        })
    }

    fn find(&self, name: &str) -> Option<&ToolDefinition> {
        self.0.iter().find(|tool| tool.name == name)
    }
}

/// The JSON types that a parameter's schema within a tool's allows; empty when it does not say.
pub(crate) fn parameter_types<'a>(schema: &'a Value, root: &'a Value) -> BTreeSet<&'a str> {
    let mut types = BTreeSet::new();
    add_types(schema, root, DEPTH_LIMIT, &mut types);
    types
}

fn add_types<'a>(schema: &'a Value, root: &'a Value, depth: usize, types: &mut BTreeSet<&'a str>) {
    if depth == 0 {
        return;
    }
    match &schema["type"] {
        Value::String(name) => {
            types.insert(name);
        }
        Value::Array(names) => types.extend(names.iter().filter_map(Value::as_str)),
        _ => {}
    }
    if schema["nullable"] == true {
        types.insert("null");
    }
    if schema["type"].is_null() {
        let listed = schema["enum"].as_array().into_iter().flatten();
        for value in listed.chain(schema.get("const")) {
            types.insert(type_of(value));
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for branch in schema[key].as_array().into_iter().flatten() {
            add_types(branch, root, depth - 1, types);
        }
    }
    let target = schema["$ref"]
        .as_str()
        .and_then(|target| root.pointer(target.strip_prefix('#')?));
    if let Some(target) = target {
        add_types(target, root, depth - 1, types);
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
