//! Functions that a benchmark of tool calls offers to models, with schemas of their arguments.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Map, Value};

use crate::corpus::Schema;

/// Functions taken, evenly out of all.
const FUNCTIONS: usize = 500;

/// Where the wheel has them: a case a line, each with its functions.
const DATA: &str = "bfcl_eval/data";

pub(crate) fn schemas(wheel: &Path) -> Vec<Schema> {
    let mut files: Vec<_> = fs::read_dir(wheel.join(DATA))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    let mut seen = BTreeSet::new();
    let mut schemas = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let cases = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for case in cases {
            for function in case["function"].as_array().into_iter().flatten() {
                let (Some(name), schema) =
                    (function["name"].as_str(), in_json(&function["parameters"]))
                else {
                    continue;
                };
                if schema.is_object() && seen.insert(schema.to_string()) {
                    schemas.push(Schema {
                        name: name.to_owned(),
                        schema,
                    });
                }
            }
        }
    }
    let step = schemas.len().div_ceil(FUNCTIONS).max(1);
    schemas.into_iter().step_by(step).collect()
}

/// The benchmark names types as Python does.
fn in_json(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => Value::Object(
            keywords
                .iter()
                .filter(|(keyword, value)| *keyword != "type" || *value != "any")
                .map(|(keyword, value)| (keyword.clone(), in_json(value)))
                .map(|(keyword, value)| match value.as_str() {
                    Some(name) if keyword == "type" => (keyword, json_type(name).into()),
                    _ => (keyword, value),
                })
                .collect::<Map<_, _>>(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(in_json).collect()),
        other => other.clone(),
    }
}

fn json_type(name: &str) -> &str {
    match name {
        "dict" | "HashMap" | "Hashtable" => "object",
        "float" | "double" => "number",
        "int" | "long" => "integer",
        "bool" | "Boolean" => "boolean",
        "list" | "tuple" | "Array" | "ArrayList" => "array",
        "String" | "char" => "string",
        other => other,
    }
}
