//! Tools a client declares and whether one must be called.

use macmlx_inference::{ToolChoice, ToolDefinition};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Error, json::fields_at};

#[derive(Debug, Deserialize)]
pub(crate) struct Fields {
    pub(crate) tools: Option<Vec<Value>>,
    pub(crate) tool_choice: Option<Value>,
    pub(crate) parallel_tool_calls: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Tool {
    r#type: Option<String>,
    function: Option<Function>,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
    strict: Option<bool>,
}

/// What may be called.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) definitions: Vec<ToolDefinition>,
    pub(crate) choice: ToolChoice,
    /// Each choice ends with its first call.
    pub(crate) is_one_call_at_most: bool,
}

impl Fields {
    pub(crate) fn into_tools(self) -> Result<Tools, Error> {
        let mut definitions = Vec::new();
        for (index, tool) in self.tools.unwrap_or_default().iter().enumerate() {
            definitions.extend(definition(tool, &format!("tools[{index}]"))?);
        }
        Ok(Tools {
            definitions,
            choice: choice(self.tool_choice.as_ref())?,
            is_one_call_at_most: self.parallel_tool_calls == Some(false),
        })
    }
}

/// `None` for tools that the server itself would have to run, which are not offered to the model.
fn definition(tool: &Value, path: &str) -> Result<Option<ToolDefinition>, Error> {
    let tool: Tool = fields_at(tool, path)?;
    let function = match (tool.r#type.as_deref(), tool.function) {
        (None | Some("function"), Some(function)) => function,
        (None | Some("function"), None) => {
            let param = format!("{path}.function");
            let message = format!("{param}: missing");
            return Err(Error::invalid(param, message));
        }
        (Some("custom"), _) => {
            return Err(Error::unsupported(
                path,
                "custom tools take free text; declare a function",
            ));
        }
        (Some(_), _) => return Ok(None),
    };
    if function.name.is_empty() {
        let param = format!("{path}.function.name");
        let message = format!("{param} is empty");
        return Err(Error::invalid(param, message));
    }
    if function.strict == Some(true) {
        return Err(Error::unsupported(
            format!("{path}.function.strict"),
            "arguments cannot be constrained to the schema; leave `strict` out",
        ));
    }
    let parameters = match function.parameters {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(schema @ Value::Object(_)) => schema,
        Some(_) => {
            let param = format!("{path}.function.parameters");
            let message = format!("{param} must be a JSON Schema object");
            return Err(Error::invalid(param, message));
        }
    };
    Ok(Some(ToolDefinition {
        name: function.name,
        description: function.description,
        parameters,
        strict: false,
    }))
}

fn choice(choice: Option<&Value>) -> Result<ToolChoice, Error> {
    const NOT_FORCED: &str = "calls cannot be forced; use `auto` or `none`";
    match choice {
        None | Some(Value::Null) => Ok(ToolChoice::Auto),
        Some(Value::String(choice)) => match choice.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" | "any" => Err(Error::unsupported("tool_choice", NOT_FORCED)),
            other => Err(Error::invalid(
                "tool_choice",
                format!("tool_choice is auto, none, required or a function, not `{other}`"),
            )),
        },
        Some(Value::Object(choice)) => match choice.get("type").and_then(Value::as_str) {
            Some("auto") => Ok(ToolChoice::Auto),
            Some("none") => Ok(ToolChoice::None),
            _ => Err(Error::unsupported("tool_choice", NOT_FORCED)),
        },
        Some(_) => Err(Error::invalid(
            "tool_choice",
            "tool_choice must be a string or an object",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::fields;

    fn tools(body: &Value) -> Result<Tools, Error> {
        fields::<Fields>(body)?.into_tools()
    }

    fn refused(body: &Value) -> String {
        match tools(body).unwrap_err() {
            Error::Invalid { param, .. } => param.unwrap(),
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn functions_are_offered_and_hosted_tools_are_not() {
        let body = json!({"tools": [
            {"type": "function", "function": {"name": "a", "description": null}},
            {"type": "web_search"},
            {"type": "function", "function": {"name": "b", "parameters": {"type": "object"}, "strict": false}},
        ]});
        let names: Vec<_> = tools(&body)
            .unwrap()
            .definitions
            .into_iter()
            .map(|tool| tool.name)
            .collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn what_cannot_be_enforced_is_refused_by_name() {
        let strict = json!({"tools": [{"function": {"name": "a", "strict": true}}]});
        assert_eq!(refused(&strict), "tools[0].function.strict");
        assert_eq!(refused(&json!({"tool_choice": "required"})), "tool_choice");
        let named = json!({"tool_choice": {"type": "function", "function": {"name": "a"}}});
        assert_eq!(refused(&named), "tool_choice");
    }

    #[test]
    fn malformed_tools_are_named() {
        for (tool, param) in [
            (json!({"type": "function"}), "tools[0].function"),
            (json!({"function": {}}), "tools[0].function.name"),
            (json!({"function": {"name": ""}}), "tools[0].function.name"),
            (json!({"function": {"name": 1}}), "tools[0].function.name"),
            (
                json!({"function": {"name": "a", "parameters": []}}),
                "tools[0].function.parameters",
            ),
            (json!({"type": "custom", "custom": {}}), "tools[0]"),
        ] {
            assert_eq!(refused(&json!({"tools": [tool]})), param);
        }
    }
}
