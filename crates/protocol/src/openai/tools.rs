//! Tools a client of chat completions declares, and whether one must be called.
//!
//! The model knows functions with JSON arguments only: a custom tool is offered as a function with
//! one string. Tools that the provider itself would run are not offered. `functions` and
//! `function_call` are how clients said it before there were tools.

use std::collections::BTreeSet;

use macmlx_inference::{ToolChoice, ToolDefinition};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::freeform;
use crate::{Error, function, json::fields_at};

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = openai::Tools)]
pub(crate) struct Fields {
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    functions: Option<Vec<Value>>,
    function_call: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Tool {
    r#type: Option<String>,
    custom: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Custom {
    name: String,
    description: Option<String>,
    format: Option<Format>,
}

/// What text a custom tool takes.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format {
    Text,
    Grammar { grammar: CustomGrammar },
}

#[derive(Debug, Deserialize)]
struct CustomGrammar {
    syntax: Syntax,
    definition: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Syntax {
    Regex,
    Lark,
}

/// What may be called.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) definitions: Vec<ToolDefinition>,
    pub(crate) choice: ToolChoice,
    /// Each choice ends with its first call.
    pub(crate) is_one_call_at_most: bool,
    pub(super) calls: Calls,
}

/// How calls are told to the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Calls {
    /// Names of custom tools.
    pub(super) custom: BTreeSet<String>,
    /// True if it is the one `function_call` of a message.
    pub(super) is_legacy: bool,
}

impl Fields {
    pub(crate) fn into_tools(self) -> Result<Tools, Error> {
        let tools = self.tools.unwrap_or_default();
        let functions = self.functions.unwrap_or_default();
        if !tools.is_empty() && !functions.is_empty() {
            return Err(Error::invalid(
                "functions",
                "functions and tools exclude each other",
            ));
        }
        let mut calls = Calls {
            is_legacy: !functions.is_empty(),
            ..Calls::default()
        };
        let mut definitions = Vec::new();
        for (index, tool) in tools.iter().enumerate() {
            definitions.extend(definition(tool, &format!("tools[{index}]"), &mut calls)?);
        }
        for (index, declared) in functions.iter().enumerate() {
            definitions.push(function(declared, &format!("functions[{index}]"))?);
        }
        let is_single = self.tool_choice.as_ref().is_some_and(is_single);
        let choice = if calls.is_legacy {
            legacy_choice(self.function_call.as_ref(), &definitions)?
        } else {
            // Some clients have tools and still choose as there were functions.
            let (new, old) = (self.tool_choice.as_ref(), self.function_call.as_ref());
            if let (Some(new), Some(old)) = (new, old)
                && new != old
            {
                return Err(Error::invalid(
                    "function_call",
                    "function_call and tool_choice say different things; send one of them",
                ));
            }
            choice(new.or(old), &mut definitions)?
        };
        Ok(Tools {
            definitions,
            choice,
            is_one_call_at_most: calls.is_legacy
                || is_single
                || self.parallel_tool_calls == Some(false),
            calls,
        })
    }
}

/// `None` for tools that the server itself would have to run, which are not offered to the model.
fn definition(
    tool: &Value,
    path: &str,
    calls: &mut Calls,
) -> Result<Option<ToolDefinition>, Error> {
    let Tool { r#type, custom } = fields_at(tool, path)?;
    match (r#type.as_deref(), custom, function::find(tool)) {
        (Some("custom"), Some(declared), _) => {
            let definition = self::custom(&declared, &format!("{path}.custom"))?;
            calls.custom.insert(definition.name.clone());
            Ok(Some(definition))
        }
        (_, _, Some(declared)) => declared.read(path).map(Some),
        (None | Some("function"), ..) => Err(no_object(path, "function")),
        (Some("custom"), ..) => Err(no_object(path, "custom")),
        (Some(_), ..) => Ok(None),
    }
}

fn no_object(path: &str, field: &str) -> Error {
    let param = format!("{path}.{field}");
    let message = format!("{param} must be an object");
    Error::invalid(param, message)
}

fn function(declared: &Value, path: &str) -> Result<ToolDefinition, Error> {
    match function::find(declared) {
        Some(declared) => declared.read(path),
        None if declared.is_object() => {
            let param = format!("{path}.name");
            let message = format!("{param} is missing");
            Err(Error::invalid(param, message))
        }
        None => Err(Error::invalid(path, format!("{path} must be an object"))),
    }
}

fn custom(declared: &Value, path: &str) -> Result<ToolDefinition, Error> {
    let custom: Custom = fields_at(declared, path)?;
    let regex = match custom.format {
        None | Some(Format::Text) => None,
        Some(Format::Grammar { grammar }) => match grammar.syntax {
            Syntax::Regex => Some(grammar.definition),
            Syntax::Lark => {
                return Err(Error::unsupported(
                    format!("{path}.format.grammar.syntax"),
                    "custom tools can be constrained by a regex, not by a lark grammar",
                ));
            }
        },
    };
    Ok(ToolDefinition {
        name: require_name(custom.name, path)?,
        description: custom.description,
        parameters: freeform::parameters(regex.as_deref()),
        strict: regex.is_some(),
    })
}

fn require_name(name: String, path: &str) -> Result<String, Error> {
    if name.is_empty() {
        let param = format!("{path}.name");
        let message = format!("{param} is empty");
        return Err(Error::invalid(param, message));
    }
    Ok(name)
}

/// Anthropic's way to ask for one call at most.
pub(super) fn is_single(choice: &Value) -> bool {
    choice["disable_parallel_tool_use"] == true
}

/// Reads `tool_choice`; tools that are not among the allowed ones are taken out.
fn choice(
    choice: Option<&Value>,
    definitions: &mut Vec<ToolDefinition>,
) -> Result<ToolChoice, Error> {
    match choice {
        None | Some(Value::Null) => Ok(ToolChoice::Auto),
        Some(Value::String(mode)) => self::mode(mode, "tool_choice", definitions),
        Some(Value::Object(fields)) => match fields.get("type").and_then(Value::as_str) {
            Some(kind @ ("function" | "custom")) => {
                let name = fields.get(kind).and_then(|tool| tool.get("name"));
                // The Responses API's spelling is a common slip.
                let name = name.or_else(|| fields.get("name")).and_then(Value::as_str);
                self::find_declared(name, &format!("tool_choice.{kind}.name"), definitions)
            }
            // Anthropic's.
            Some("tool") => {
                let name = fields.get("name").and_then(Value::as_str);
                self::find_declared(name, "tool_choice.name", definitions)
            }
            Some("allowed_tools") => {
                // The Responses API has no object within it.
                let allowed = fields
                    .get("allowed_tools")
                    .or(choice)
                    .unwrap_or(&Value::Null);
                allow_only(allowed, definitions)?;
                let mode = allowed.get("mode").and_then(Value::as_str);
                self::mode(
                    mode.unwrap_or("auto"),
                    "tool_choice.allowed_tools.mode",
                    definitions,
                )
            }
            // Some clients write the modes as objects.
            Some(mode) => self::mode(mode, "tool_choice.type", definitions),
            None => match fields.get("name").and_then(Value::as_str) {
                // As functions of old are chosen.
                name @ Some(_) => self::find_declared(name, "tool_choice.name", definitions),
                None => Err(Error::invalid(
                    "tool_choice.type",
                    "tool_choice.type is missing",
                )),
            },
        },
        Some(_) => Err(Error::invalid(
            "tool_choice",
            "tool_choice must be a string or an object",
        )),
    }
}

fn mode(mode: &str, param: &str, definitions: &[ToolDefinition]) -> Result<ToolChoice, Error> {
    match mode {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" | "any" if definitions.is_empty() => Err(Error::invalid(
            param,
            format!("{param}: a call is required, and there are no tools"),
        )),
        "required" | "any" => Ok(ToolChoice::Required),
        other => Err(Error::invalid(
            param,
            format!("{param} is auto, none, required, a tool or allowed_tools, not `{other}`"),
        )),
    }
}

/// The one tool that must be called.
fn find_declared(
    name: Option<&str>,
    param: &str,
    definitions: &[ToolDefinition],
) -> Result<ToolChoice, Error> {
    let Some(name) = name else {
        return Err(Error::invalid(param, format!("{param} is missing")));
    };
    if definitions.iter().any(|tool| tool.name == name) {
        return Ok(ToolChoice::Named(name.to_owned()));
    }
    Err(Error::invalid(
        param,
        format!("{param}: there is no tool `{name}`"),
    ))
}

fn allow_only(allowed: &Value, definitions: &mut Vec<ToolDefinition>) -> Result<(), Error> {
    const PARAM: &str = "tool_choice.allowed_tools.tools";
    let Some(tools) = allowed.get("tools").and_then(Value::as_array) else {
        return Err(Error::invalid(
            PARAM,
            format!("{PARAM} must be an array of tools"),
        ));
    };
    let names: BTreeSet<&str> = tools
        .iter()
        .filter_map(|tool| {
            let inner = tool.get("function").or_else(|| tool.get("custom"));
            inner.unwrap_or(tool).get("name")?.as_str()
        })
        .collect();
    definitions.retain(|tool| names.contains(tool.name.as_str()));
    Ok(())
}

fn legacy_choice(
    choice: Option<&Value>,
    definitions: &[ToolDefinition],
) -> Result<ToolChoice, Error> {
    match choice {
        None | Some(Value::Null) => Ok(ToolChoice::Auto),
        Some(Value::String(choice)) if choice == "auto" => Ok(ToolChoice::Auto),
        Some(Value::String(choice)) if choice == "none" => Ok(ToolChoice::None),
        Some(Value::Object(fields)) => find_declared(
            fields.get("name").and_then(Value::as_str),
            "function_call.name",
            definitions,
        ),
        Some(_) => Err(Error::invalid(
            "function_call",
            "function_call is auto, none or an object with the name of a function",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    fn names(tools: &Tools) -> Vec<&str> {
        tools
            .definitions
            .iter()
            .map(|tool| tool.name.as_str())
            .collect()
    }

    fn with_choice(choice: &Value) -> Value {
        json!({
            "tools": [
                {"type": "function", "function": {"name": "a"}},
                {"type": "custom", "custom": {"name": "b"}},
            ],
            "tool_choice": choice,
        })
    }

    #[test]
    fn functions_are_offered_and_hosted_tools_are_not() {
        let body = json!({"tools": [
            {"type": "function", "function": {"name": "a", "description": null}},
            {"type": "web_search"},
            {"type": "function", "function": {"name": "b", "parameters": {"type": "object"}, "strict": true}},
        ]});
        let tools = tools(&body).unwrap();
        assert_eq!(names(&tools), ["a", "b"]);
        assert!(!tools.definitions[0].strict && tools.definitions[1].strict);
        assert_eq!(tools.choice, ToolChoice::Auto);
    }

    #[test]
    fn custom_tools_are_functions_with_one_text() {
        let body = json!({"tools": [
            {"type": "custom", "custom": {"name": "patch", "description": "d", "format": {"type": "text"}}},
        ]});
        let tools = tools(&body).unwrap();
        assert_eq!(tools.definitions[0].parameters, freeform::parameters(None));
        assert!(tools.calls.custom.contains("patch"));
    }

    #[test]
    fn a_custom_tools_text_is_constrained_by_a_regex_only() {
        let of = |format: Value| json!({"tools": [{"type": "custom", "custom": {"name": "at", "format": format}}]});
        let regex = json!({"syntax": "regex", "definition": "a|b"});
        let tools = tools(&of(json!({"type": "grammar", "grammar": regex}))).unwrap();
        assert!(tools.definitions[0].strict);
        let text = &tools.definitions[0].parameters["properties"]["input"];
        assert_eq!(text["pattern"], "^(?:a|b)$");
        let lark = json!({"syntax": "lark", "definition": "start: \"a\""});
        assert_eq!(
            refused(&of(json!({"type": "grammar", "grammar": lark}))),
            "tools[0].custom.format.grammar.syntax"
        );
        refused(&of(json!({"type": "grammar"})));
        refused(&of(json!({"type": "yaml"})));
    }

    #[test]
    fn every_form_of_choice() {
        for (choice, expected) in [
            (json!(null), ToolChoice::Auto),
            (json!("auto"), ToolChoice::Auto),
            (json!({"type": "auto"}), ToolChoice::Auto),
            (json!("none"), ToolChoice::None),
            (json!("required"), ToolChoice::Required),
            (json!("any"), ToolChoice::Required),
            (
                json!({"type": "function", "function": {"name": "a"}}),
                ToolChoice::Named("a".into()),
            ),
            (
                json!({"type": "function", "name": "a"}),
                ToolChoice::Named("a".into()),
            ),
            (
                json!({"type": "custom", "custom": {"name": "b"}}),
                ToolChoice::Named("b".into()),
            ),
        ] {
            let tools = tools(&with_choice(&choice)).unwrap();
            assert_eq!(tools.choice, expected, "{choice}");
            assert_eq!(names(&tools), ["a", "b"]);
        }
    }

    #[test]
    fn only_allowed_tools_are_offered() {
        for (mode, expected) in [
            ("auto", ToolChoice::Auto),
            ("required", ToolChoice::Required),
        ] {
            let tools = tools(&with_choice(&json!({
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": mode,
                    "tools": [{"type": "function", "function": {"name": "a"}}],
                },
            })))
            .unwrap();
            assert_eq!(names(&tools), ["a"]);
            assert_eq!(tools.choice, expected);
        }
    }

    #[test]
    fn choices_that_mean_nothing_are_named() {
        for (choice, param) in [
            (json!("sometimes"), "tool_choice"),
            (json!(5), "tool_choice"),
            (json!({}), "tool_choice.type"),
            (json!({"type": "web_search"}), "tool_choice.type"),
            (json!({"type": "function"}), "tool_choice.function.name"),
            (
                json!({"type": "function", "function": {"name": "c"}}),
                "tool_choice.function.name",
            ),
            (
                json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}),
                "tool_choice.allowed_tools.tools",
            ),
            (
                json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}),
                "tool_choice.allowed_tools.mode",
            ),
        ] {
            assert_eq!(refused(&with_choice(&choice)), param, "{choice}");
        }
        assert_eq!(refused(&json!({"tool_choice": "required"})), "tool_choice");
    }

    #[test]
    fn functions_of_old_are_tools() {
        let body = |call: Value| {
            json!({
                "functions": [{"name": "a", "parameters": {"type": "object"}}, {"name": "b"}],
                "function_call": call,
            })
        };
        for (call, expected) in [
            (json!(null), ToolChoice::Auto),
            (json!("auto"), ToolChoice::Auto),
            (json!("none"), ToolChoice::None),
            (json!({"name": "b"}), ToolChoice::Named("b".into())),
        ] {
            let tools = tools(&body(call)).unwrap();
            assert_eq!(tools.choice, expected);
            assert!(tools.calls.is_legacy && tools.is_one_call_at_most);
            assert_eq!(names(&tools), ["a", "b"]);
        }
        assert_eq!(refused(&body(json!("required"))), "function_call");
        assert_eq!(refused(&body(json!({"name": "c"}))), "function_call.name");
        let both = json!({"functions": [{"name": "a"}], "tools": [{"function": {"name": "a"}}]});
        assert_eq!(refused(&both), "functions");
    }

    #[test]
    fn malformed_tools_are_named() {
        for (tool, param) in [
            (json!({"type": "function"}), "tools[0].function"),
            (json!({"type": "custom"}), "tools[0].custom"),
            (json!({"function": {}}), "tools[0].function.name"),
            (json!({"function": {"name": ""}}), "tools[0].function.name"),
            (json!({"function": {"name": 1}}), "tools[0].function.name"),
            (
                json!({"function": {"name": "a", "parameters": []}}),
                "tools[0].function.parameters",
            ),
            (
                json!({"type": "custom", "custom": {}}),
                "tools[0].custom.name",
            ),
        ] {
            assert_eq!(refused(&json!({"tools": [tool]})), param);
        }
    }
}
