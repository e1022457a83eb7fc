//! Tools as clients of responses declare them, and what a call of the model means to the client.
//!
//! The model knows functions with JSON arguments only, under one name each. So a tool in a
//! namespace is offered as `namespace__tool`, a custom tool as a function with one string, and the
//! search for tools as a function; calls are turned back. A custom tool's grammar is told to the
//! model in the description; only a regular expression also constrains it. Tools that the provider
//! itself would run are not offered.

use std::collections::HashMap;

use macmlx_inference::{ToolChoice, ToolDefinition};
use serde::Deserialize;
use serde_json::{Value, json};

use super::freeform;
use crate::{Error, function, json::fields_at};

/// Name under which the search for tools is offered.
pub(super) const SEARCH: &str = "tool_search";

#[derive(Debug, Deserialize)]
struct Tool {
    r#type: Option<String>,
    name: Option<String>,
    description: Option<String>,
    parameters: Option<Value>,
    format: Option<Format>,
    tools: Option<Vec<Value>>,
    execution: Option<String>,
    defer_loading: Option<bool>,
}

/// What text a custom tool takes.
#[derive(Debug, Deserialize)]
struct Format {
    r#type: Option<String>,
    syntax: Option<String>,
    definition: Option<String>,
}

impl Format {
    /// What constrains the text.
    fn regex(&self) -> Option<&str> {
        let is_regex =
            self.r#type.as_deref() == Some("grammar") && self.syntax.as_deref() == Some("regex");
        self.definition.as_deref().filter(|_| is_regex)
    }
}

/// What a call turns into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Custom,
    Search,
}

/// A tool as the client knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Callee {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
}

/// All tools of a request, by the name the model knows.
#[derive(Debug, Default)]
pub(super) struct Toolbox {
    definitions: Vec<ToolDefinition>,
    callees: HashMap<String, Callee>,
    /// The client finds tools, so those it wants loaded later stay out until it has found them.
    is_searchable: bool,
}

/// What the backend is told of tools.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) definitions: Vec<ToolDefinition>,
    pub(super) choice: ToolChoice,
    pub(super) callees: HashMap<String, Callee>,
}

/// The name the model knows a tool by.
pub(super) fn model_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}__{name}"),
        _ => name.to_owned(),
    }
}

impl Toolbox {
    /// Adds what `tools` declares.
    pub(super) fn declare(&mut self, tools: &[Value], path: &str) -> Result<(), Error> {
        self.is_searchable |= tools.iter().any(is_client_search);
        self.add_all(tools, path, None, !self.is_searchable)
    }

    /// Adds what the client found, whether or not it was to be loaded later.
    pub(super) fn load(&mut self, tools: &[Value], path: &str) -> Result<(), Error> {
        self.add_all(tools, path, None, true)
    }

    fn add_all(
        &mut self,
        tools: &[Value],
        path: &str,
        namespace: Option<&Namespace<'_>>,
        takes_deferred: bool,
    ) -> Result<(), Error> {
        for (index, tool) in tools.iter().enumerate() {
            self.add(tool, &format!("{path}[{index}]"), namespace, takes_deferred)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        tool: &Value,
        path: &str,
        namespace: Option<&Namespace<'_>>,
        takes_deferred: bool,
    ) -> Result<(), Error> {
        let given = tool;
        let tool: Tool = fields_at(given, path)?;
        if tool.defer_loading == Some(true) && !takes_deferred {
            return Ok(());
        }
        let declared = function::find(given);
        let kind = match tool.r#type.as_deref() {
            Some("custom") if declared.is_none() => Kind::Custom,
            Some(SEARCH) if tool.execution.as_deref() == Some("client") => Kind::Search,
            Some("namespace") if namespace.is_none() => {
                let name = named(tool.name, path)?;
                let inner = Namespace {
                    name: &name,
                    description: tool.description.as_deref(),
                };
                let tools = tool.tools.unwrap_or_default();
                let path = format!("{path}.tools");
                return self.add_all(&tools, &path, Some(&inner), takes_deferred);
            }
            _ if declared.is_some() => Kind::Function,
            None => {
                let param = format!("{path}.type");
                let message = format!("{param} is missing");
                return Err(Error::invalid(param, message));
            }
            Some("function") => return named(tool.name, path).map(drop),
            Some(_) => return Ok(()),
        };
        let function = match declared {
            Some(declared) if kind == Kind::Function => Some(declared.read(path)?),
            _ => None,
        };
        let name = match kind {
            Kind::Search => SEARCH.to_owned(),
            Kind::Function | Kind::Custom => match &function {
                Some(function) => function.name.clone(),
                None => named(tool.name, path)?,
            },
        };
        let offered = model_name(namespace.map(|namespace| namespace.name), &name);
        if self.callees.contains_key(&offered) {
            // Found again, or declared twice: the first stands.
            return Ok(());
        }
        let (description, strict, function_schema) = match function {
            Some(function) => (
                function.description,
                function.strict,
                Some(function.parameters),
            ),
            None => (tool.description, false, None),
        };
        let mut description = description.filter(|text| !text.is_empty());
        let regex = tool.format.as_ref().and_then(Format::regex);
        let parameters = match kind {
            Kind::Custom => {
                description = with_grammar(description, tool.format.as_ref());
                freeform::parameters(regex)
            }
            Kind::Function | Kind::Search => match function_schema {
                Some(parameters) => parameters,
                None => schema(tool.parameters, path)?,
            },
        };
        if let Some(about) = namespace.and_then(|namespace| namespace.unsaid(&self.callees)) {
            // Long words about a whole namespace are said once.
            description = Some(match description {
                Some(own) => format!("{about}\n\n{own}"),
                None => about.to_owned(),
            });
        }
        self.definitions.push(ToolDefinition {
            name: offered.clone(),
            description,
            parameters,
            strict: match kind {
                Kind::Function => strict,
                Kind::Custom => regex.is_some(),
                Kind::Search => false,
            },
        });
        let callee = Callee {
            kind,
            name,
            namespace: namespace.map(|namespace| namespace.name.to_owned()),
        };
        self.callees.insert(offered, callee);
        Ok(())
    }

    /// Applies `tool_choice`.
    pub(super) fn offer(mut self, choice: Option<&Value>) -> Result<Offer, Error> {
        let choice = match choice {
            None | Some(Value::Null) => ToolChoice::Auto,
            Some(Value::String(mode)) => self.mode(mode, "tool_choice")?,
            Some(Value::Object(fields)) => {
                // Chat completions have an object within it.
                let kind = fields.get("type").and_then(Value::as_str);
                let inner = kind.and_then(|kind| fields.get(kind)?.as_object());
                let fields = inner.unwrap_or(fields);
                let text = |name: &str| fields.get(name).and_then(Value::as_str);
                match (kind, text("name")) {
                    (Some("allowed_tools"), _) => {
                        let allowed = fields.get("tools").and_then(Value::as_array);
                        let Some(allowed) = allowed else {
                            return Err(Error::invalid(
                                "tool_choice.tools",
                                "tool_choice.tools must be an array of tools",
                            ));
                        };
                        self.allow_only(allowed);
                        self.mode(text("mode").unwrap_or("auto"), "tool_choice.mode")?
                    }
                    // Anthropic's, and that of functions of old.
                    (Some("function" | "custom" | "tool") | None, Some(name)) => {
                        self.named(&model_name(text("namespace"), name))?
                    }
                    (Some("function" | "custom" | "tool"), None) => {
                        return Err(Error::invalid(
                            "tool_choice.name",
                            "tool_choice.name is missing",
                        ));
                    }
                    (Some(SEARCH), _) => self.named(SEARCH)?,
                    (Some(mode @ ("auto" | "none" | "required" | "any")), _) => {
                        self.mode(mode, "tool_choice.type")?
                    }
                    (Some(hosted), _) => {
                        let reason = format!("there is no `{hosted}` tool on this server");
                        return Err(Error::unsupported("tool_choice", reason));
                    }
                    (None, _) => {
                        return Err(Error::invalid(
                            "tool_choice.type",
                            "tool_choice.type is missing",
                        ));
                    }
                }
            }
            Some(_) => {
                return Err(Error::invalid(
                    "tool_choice",
                    "tool_choice must be a string or an object",
                ));
            }
        };
        Ok(Offer {
            definitions: self.definitions,
            choice,
            callees: self.callees,
        })
    }

    fn mode(&self, mode: &str, param: &str) -> Result<ToolChoice, Error> {
        match mode {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" | "any" if self.definitions.is_empty() => Err(Error::invalid(
                param,
                format!("{param}: a tool is required but none is declared that could be called"),
            )),
            "required" | "any" => Ok(ToolChoice::Required),
            other => Err(Error::invalid(
                param,
                format!("{param} is auto, none or required, not `{other}`"),
            )),
        }
    }

    fn named(&self, offered: &str) -> Result<ToolChoice, Error> {
        if self.callees.contains_key(offered) {
            Ok(ToolChoice::Named(offered.to_owned()))
        } else {
            Err(Error::invalid(
                "tool_choice",
                format!("tool_choice: no tool `{offered}` is declared"),
            ))
        }
    }

    /// What is not allowed is not offered at all.
    fn allow_only(&mut self, allowed: &[Value]) {
        let callees = &self.callees;
        let is_allowed = |offered: &str| {
            allowed.iter().any(|tool| {
                let tool = tool.get("function").unwrap_or(tool);
                let text = |name: &str| tool.get(name).and_then(Value::as_str);
                match (text("type"), text("name")) {
                    (Some(SEARCH), _) => offered == SEARCH,
                    (Some("namespace"), Some(name)) => callees
                        .get(offered)
                        .is_some_and(|callee| callee.namespace.as_deref() == Some(name)),
                    (_, Some(name)) => offered == model_name(text("namespace"), name),
                    _ => false,
                }
            })
        };
        self.definitions.retain(|tool| is_allowed(&tool.name));
    }
}

struct Namespace<'a> {
    name: &'a str,
    description: Option<&'a str>,
}

impl Namespace<'_> {
    /// The description, if no tool of the namespace has told it yet.
    fn unsaid(&self, callees: &HashMap<String, Callee>) -> Option<&str> {
        let is_said = callees
            .values()
            .any(|callee| callee.namespace.as_deref() == Some(self.name));
        self.description.filter(|text| !text.is_empty() && !is_said)
    }
}

fn is_client_search(tool: &Value) -> bool {
    tool.get("type").is_some_and(|kind| kind == SEARCH)
        && tool.get("execution").is_some_and(|by| by == "client")
}

fn named(name: Option<String>, path: &str) -> Result<String, Error> {
    name.filter(|name| !name.is_empty()).ok_or_else(|| {
        let param = format!("{path}.name");
        let message = format!("{param} is missing or empty");
        Error::invalid(param, message)
    })
}

fn schema(parameters: Option<Value>, path: &str) -> Result<Value, Error> {
    match parameters {
        None | Some(Value::Null) => Ok(json!({"type": "object", "properties": {}})),
        Some(schema @ Value::Object(_)) => Ok(schema),
        Some(_) => {
            let param = format!("{path}.parameters");
            let message = format!("{param} must be a JSON Schema object");
            Err(Error::invalid(param, message))
        }
    }
}

fn with_grammar(description: Option<String>, format: Option<&Format>) -> Option<String> {
    let grammar = format
        .filter(|format| format.r#type.as_deref() == Some("grammar"))
        .and_then(|format| {
            let syntax = format.syntax.as_deref().unwrap_or("lark");
            let definition = format.definition.as_deref()?;
            Some(format!(
                "The input must match this {syntax} grammar:\n{definition}"
            ))
        });
    match (description, grammar) {
        (Some(description), Some(grammar)) => Some(format!("{description}\n\n{grammar}")),
        (description, grammar) => description.or(grammar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(tools: &Value, choice: &Value) -> Result<Offer, Error> {
        let mut toolbox = Toolbox::default();
        toolbox.declare(tools.as_array().unwrap(), "tools")?;
        toolbox.offer(Some(choice))
    }

    fn names(offer: &Offer) -> Vec<&str> {
        offer
            .definitions
            .iter()
            .map(|tool| tool.name.as_str())
            .collect()
    }

    fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
        match result.unwrap_err() {
            Error::Invalid { param, .. } => param.unwrap(),
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    fn some_tools() -> Value {
        json!([
            {"type": "function", "name": "run", "parameters": {"type": "object"}, "strict": true},
            {"type": "custom", "name": "patch", "description": "Patches.",
             "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"x\""}},
            {"type": "namespace", "name": "mcp__a", "description": "About a.", "tools": [
                {"type": "function", "name": "echo"},
                {"type": "function", "name": "run", "description": "Runs."},
            ]},
            {"type": "web_search", "external_web_access": true},
            {"type": "mcp", "server_label": "x"},
        ])
    }

    #[test]
    fn a_regex_constrains_a_custom_tool() {
        let regex = json!({"type": "grammar", "syntax": "regex", "definition": "a|b"});
        let tool = json!([{"type": "custom", "name": "at", "format": regex}]);
        let offer = offer(&tool, &json!("auto")).unwrap();
        assert!(offer.definitions[0].strict);
        let text = &offer.definitions[0].parameters["properties"]["input"];
        assert_eq!(text["pattern"], "^(?:a|b)$");
    }

    #[test]
    fn every_tool_a_client_runs_is_offered_under_a_name_of_its_own() {
        let offer = offer(&some_tools(), &json!("auto")).unwrap();
        assert_eq!(
            names(&offer),
            ["run", "patch", "mcp__a__echo", "mcp__a__run"]
        );
        let tools = &offer.definitions;
        assert!(tools[0].strict);
        assert_eq!(
            tools[1].description.as_deref(),
            Some("Patches.\n\nThe input must match this lark grammar:\nstart: \"x\"")
        );
        assert_eq!(tools[1].parameters, freeform::parameters(None));
        assert_eq!(tools[2].description.as_deref(), Some("About a."));
        assert_eq!(tools[3].description.as_deref(), Some("Runs."));
        assert_eq!(
            offer.callees["mcp__a__run"],
            Callee {
                kind: Kind::Function,
                name: "run".into(),
                namespace: Some("mcp__a".into()),
            }
        );
        assert_eq!(offer.callees["patch"].kind, Kind::Custom);
    }

    #[test]
    fn tools_for_later_wait_for_a_search_of_the_client() {
        let later = json!({"type": "function", "name": "later", "defer_loading": true});
        let client = json!({"type": "tool_search", "execution": "client", "parameters": {}});
        let hosted = json!({"type": "tool_search"});
        let names_with = |search: &Value| {
            let offer = offer(&json!([search, later]), &Value::Null).unwrap();
            names(&offer).join(",")
        };
        assert_eq!(names_with(&client), "tool_search");
        assert_eq!(names_with(&hosted), "later");
        let mut toolbox = Toolbox::default();
        toolbox.declare(&[client, later.clone()], "tools").unwrap();
        toolbox.load(&[later], "input[0].tools").unwrap();
        assert_eq!(
            names(&toolbox.offer(None).unwrap()),
            ["tool_search", "later"]
        );
    }

    #[test]
    fn every_form_of_choice_is_read() {
        for (choice, expected) in [
            (json!(null), ToolChoice::Auto),
            (json!("none"), ToolChoice::None),
            (json!("required"), ToolChoice::Required),
            (
                json!({"type": "function", "name": "run"}),
                ToolChoice::Named("run".into()),
            ),
            (
                json!({"type": "custom", "name": "patch"}),
                ToolChoice::Named("patch".into()),
            ),
            (
                json!({"type": "function", "name": "echo", "namespace": "mcp__a"}),
                ToolChoice::Named("mcp__a__echo".into()),
            ),
        ] {
            assert_eq!(offer(&some_tools(), &choice).unwrap().choice, expected);
        }
    }

    #[test]
    fn only_allowed_tools_are_offered() {
        let choice = json!({"type": "allowed_tools", "mode": "required", "tools": [
            {"type": "function", "name": "run"},
            {"type": "namespace", "name": "mcp__a"},
            {"type": "web_search"},
        ]});
        let offer = offer(&some_tools(), &choice).unwrap();
        assert_eq!(names(&offer), ["run", "mcp__a__echo", "mcp__a__run"]);
        assert_eq!(offer.choice, ToolChoice::Required);
    }

    #[test]
    fn wrong_choices_are_named() {
        for (choice, param) in [
            (json!("sometimes"), "tool_choice"),
            (json!(1), "tool_choice"),
            (json!({}), "tool_choice.type"),
            (json!({"type": "function"}), "tool_choice.name"),
            (json!({"type": "function", "name": "x"}), "tool_choice"),
            (json!({"type": "web_search_preview"}), "tool_choice"),
            (json!({"type": "allowed_tools"}), "tool_choice.tools"),
            (
                json!({"type": "allowed_tools", "mode": "required", "tools": []}),
                "tool_choice.mode",
            ),
        ] {
            assert_eq!(refused(offer(&some_tools(), &choice)), param, "{choice}");
        }
        assert_eq!(
            refused(offer(&json!([]), &json!("required"))),
            "tool_choice"
        );
    }

    #[test]
    fn malformed_tools_are_named() {
        for (tool, param) in [
            (json!({}), "tools[0].type"),
            (json!("x"), "tools[0]"),
            (json!({"type": "function"}), "tools[0].name"),
            (json!({"type": "custom", "name": ""}), "tools[0].name"),
            (json!({"type": "function", "name": 1}), "tools[0].name"),
            (
                json!({"type": "function", "name": "a", "parameters": []}),
                "tools[0].parameters",
            ),
            (
                json!({"type": "namespace", "name": "n", "tools": [{"type": "function"}]}),
                "tools[0].tools[0].name",
            ),
        ] {
            assert_eq!(
                refused(offer(&json!([tool]), &Value::Null)),
                param,
                "{tool}"
            );
        }
    }
}
