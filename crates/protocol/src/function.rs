//! A function that a client declares for the model to call, in any dialect's shape.

use macmlx_inference::ToolDefinition;
use serde_json::{Value, json};

use crate::Error;

/// Where a declaration has what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Declared<'a> {
    /// The object with the name.
    function: &'a Value,
    /// The names from the declaration to that object.
    wrapper: &'static str,
    /// The name of the schema's field.
    schema: Option<&'static str>,
}

/// Names that dialects have for the schema of a function's arguments: OpenAI's, Anthropic's, MCP's
/// and `FunctionTool`'s.
const SCHEMAS: &[&str] = &[
    "parameters",
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
];

/// The function of a declaration; `None`: it has none of the shapes, so it is a tool of another kind.
///
/// The shapes are `{"type": "function", "function": {…}}` (chat), `{"type": "function", "name": …,
/// "parameters": …}` (responses), `{"name": …, "input_schema": …}` (Anthropic, with or without a
/// type), and the bare `{"name": …, "parameters": …}` of functions of old.
pub(crate) fn find(declaration: &Value) -> Option<Declared<'_>> {
    let fields = declaration.as_object()?;
    let is_given = |name: &&&str| fields.get(**name).is_some_and(|schema| !schema.is_null());
    let kind = fields.get("type").and_then(Value::as_str);
    if let Some(function @ Value::Object(inner)) = fields.get("function") {
        let schema = SCHEMAS
            .iter()
            .find(|name| inner.get(**name).is_some_and(|schema| !schema.is_null()));
        return Some(Declared {
            function,
            wrapper: ".function",
            schema: schema.copied(),
        });
    }
    let schema = SCHEMAS.iter().find(is_given).copied();
    let is_function = match kind {
        // Typed tools that their provider knows have no schema.
        Some(kind) if kind != "function" => {
            schema.is_some() && fields.get("name").is_some_and(Value::is_string)
        }
        _ => fields.contains_key("name"),
    };
    is_function.then_some(Declared {
        function: declaration,
        wrapper: "",
        schema,
    })
}

impl Declared<'_> {
    /// Whether it says which arguments the function takes.
    pub(crate) fn has_schema(&self) -> bool {
        self.schema.is_some()
    }

    /// The definition; `path` is where the declaration stands.
    pub(crate) fn read(&self, path: &str) -> Result<ToolDefinition, Error> {
        let path = format!("{path}{}", self.wrapper);
        let text = |field: &str| match &self.function[field] {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(wrong(&format!("{path}.{field}"), "must be a string")),
        };
        let name = match text("name")? {
            None => return Err(wrong(&format!("{path}.name"), "is missing")),
            Some(name) if name.is_empty() => {
                return Err(wrong(&format!("{path}.name"), "is empty"));
            }
            Some(name) => name,
        };
        let parameters = match self.schema {
            None => json!({"type": "object", "properties": {}}),
            Some(field) => match &self.function[field] {
                schema @ Value::Object(_) => schema.clone(),
                _ => {
                    return Err(wrong(
                        &format!("{path}.{field}"),
                        "must be a JSON Schema object",
                    ));
                }
            },
        };
        let strict = match &self.function["strict"] {
            Value::Null => false,
            Value::Bool(strict) => *strict,
            _ => return Err(wrong(&format!("{path}.strict"), "must be true or false")),
        };
        Ok(ToolDefinition {
            name,
            description: text("description")?,
            parameters,
            strict,
        })
    }
}

fn wrong(param: &str, what: &str) -> Error {
    Error::invalid(param, format!("{param} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_declares_the_same_function() {
        let schema = json!({"type": "object"});
        let expected = ToolDefinition {
            name: "f".into(),
            description: Some("F.".into()),
            parameters: schema.clone(),
            strict: true,
        };
        for declaration in [
            json!({"type": "function", "function":
                {"name": "f", "description": "F.", "parameters": schema, "strict": true}}),
            json!({"function":
                {"name": "f", "description": "F.", "parameters": schema, "strict": true}}),
            json!({"type": "function", "name": "f", "description": "F.", "parameters": schema,
                "strict": true}),
            json!({"name": "f", "description": "F.", "input_schema": schema, "strict": true}),
            json!({"type": "custom", "name": "f", "description": "F.", "input_schema": schema,
                "strict": true, "cache_control": {}}),
            json!({"name": "f", "description": "F.", "inputSchema": schema, "strict": true}),
            json!({"name": "f", "description": "F.", "parameters": schema, "strict": true}),
        ] {
            let found = find(&declaration).unwrap().read("tools[0]");
            assert_eq!(found.as_ref(), Ok(&expected), "{declaration}");
        }
    }

    #[test]
    fn tools_of_providers_are_no_functions() {
        for declaration in [
            json!({"type": "web_search"}),
            json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 8}),
            json!({"type": "custom", "custom": {"name": "f"}}),
            json!({"type": "mcp", "server_label": "x"}),
            json!({"type": "bash_20250124", "name": "bash"}),
            json!({}),
            json!("f"),
        ] {
            assert!(find(&declaration).is_none(), "{declaration}");
        }
    }

    #[test]
    fn wrong_declarations_are_named_where_they_are_wrong() {
        for (declaration, param) in [
            (json!({"function": {}}), "t.function.name"),
            (
                json!({"type": "function", "function": {"name": 5}}),
                "t.function.name",
            ),
            (
                json!({"function": {"name": "f", "parameters": []}}),
                "t.function.parameters",
            ),
            (json!({"name": "f", "input_schema": []}), "t.input_schema"),
            (json!({"name": ""}), "t.name"),
            (json!({"name": "f", "strict": "yes"}), "t.strict"),
        ] {
            let error = find(&declaration).unwrap().read("t").unwrap_err();
            assert!(
                matches!(&error, Error::Invalid { param: Some(named), .. } if named == param),
                "{declaration}: {error}"
            );
        }
    }
}
