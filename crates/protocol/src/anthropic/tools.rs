//! Tools a client declares, and whether one must be called.
//!
//! Tools with `defer_loading` are left out until the conversation names them. They then follow the
//! standing tools in the order in which they were first named, so that a prompt shares the prefix
//! of the one before up to there, however the client orders its list.

use std::collections::{HashMap, HashSet};

use macmlx_inference::{ToolChoice, ToolDefinition};
use serde::Deserialize;
use serde_json::Value;

use super::content::wrong;
use crate::{Error, function, json::fields_at};

/// What a turn does to the tools on offer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ToolChange {
    /// A deferred tool was found or called.
    Load(String),
    /// A tool defined in the conversation itself.
    Define {
        definition: Value,
        path: String,
    },
    Withdraw(String),
}

/// What may be called.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) definitions: Vec<ToolDefinition>,
    pub(super) choice: ToolChoice,
    /// The answer ends with its first call.
    pub(super) is_one_call_at_most: bool,
}

#[derive(Debug, Deserialize)]
struct Tool {
    input_examples: Option<Vec<Value>>,
    defer_loading: Option<bool>,
    allowed_callers: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    r#type: String,
    name: Option<String>,
    disable_parallel_tool_use: Option<bool>,
}

/// Reads `tools` and `tool_choice`, with what the conversation did to them.
pub(super) fn tools(
    declared: &[Value],
    changes: Vec<ToolChange>,
    choice: Option<&Value>,
    is_parallel: Option<bool>,
) -> Result<Tools, Error> {
    let choice = choice.filter(|choice| !choice.is_null());
    let choice = choice.map(read_choice).transpose()?;
    let mut offer = Offer {
        // A search that is Anthropic's to run finds nothing here: its tools are offered at once.
        is_searched: !declared.iter().any(is_hosted_search),
        ..Offer::default()
    };
    for (index, tool) in declared.iter().enumerate() {
        offer.declare(tool, &format!("tools[{index}]"))?;
    }
    for change in changes {
        offer.change(change)?;
    }
    if let Some(name) = choice.as_ref().and_then(|choice| choice.name.as_deref()) {
        offer.load(name);
    }
    let definitions = offer.offered;
    let is_single = choice
        .as_ref()
        .and_then(|choice| choice.disable_parallel_tool_use);
    if is_single.is_some() && is_single == is_parallel {
        return Err(wrong(
            "parallel_tool_calls",
            "and tool_choice.disable_parallel_tool_use say different things; send one of them",
        ));
    }
    Ok(Tools {
        is_one_call_at_most: is_single == Some(true) || is_parallel == Some(false),
        choice: match choice {
            Some(choice) => choice.into_choice(&definitions)?,
            None => ToolChoice::Auto,
        },
        definitions,
    })
}

#[derive(Debug, Default)]
struct Offer {
    offered: Vec<ToolDefinition>,
    deferred: HashMap<String, ToolDefinition>,
    names: HashSet<String>,
    is_searched: bool,
}

impl Offer {
    fn declare(&mut self, tool: &Value, path: &str) -> Result<(), Error> {
        let Some((definition, is_deferred)) = read_tool(tool, path)? else {
            return Ok(());
        };
        if !self.names.insert(definition.name.clone()) {
            return Err(wrong(
                &format!("{path}.name"),
                &format!("is that of another tool, too: `{}`", definition.name),
            ));
        }
        if is_deferred && self.is_searched {
            self.deferred.insert(definition.name.clone(), definition);
        } else {
            self.offered.push(definition);
        }
        Ok(())
    }

    fn change(&mut self, change: ToolChange) -> Result<(), Error> {
        match change {
            ToolChange::Load(name) => self.load(&name),
            ToolChange::Define { definition, path } => {
                if let Some((definition, _)) = read_tool(&definition, &path)? {
                    self.withdraw(&definition.name);
                    self.offered.push(definition);
                }
            }
            ToolChange::Withdraw(name) => self.withdraw(&name),
        }
        Ok(())
    }

    fn load(&mut self, name: &str) {
        self.offered.extend(self.deferred.remove(name));
    }

    /// It may be loaded again.
    fn withdraw(&mut self, name: &str) {
        if let Some(index) = self.offered.iter().position(|tool| tool.name == name) {
            let tool = self.offered.remove(index);
            self.deferred.insert(tool.name.clone(), tool);
        }
    }
}

fn is_hosted_search(tool: &Value) -> bool {
    tool["type"]
        .as_str()
        .is_some_and(|kind| kind.starts_with("tool_search_tool"))
}

/// A tool and whether it waits to be found. `None` for tools that are not the model's to call:
/// those that Anthropic's servers would run or that come without a schema because Claude knows
/// them, and those that only hosted code may call.
fn read_tool(tool: &Value, path: &str) -> Result<Option<(ToolDefinition, bool)>, Error> {
    if !tool.is_object() {
        return Err(wrong(path, "must be an object"));
    }
    let kind = match &tool["type"] {
        Value::Null => "custom",
        Value::String(kind) => kind,
        _ => return Err(wrong(&format!("{path}.type"), "must be a string")),
    };
    let declared = match function::find(tool) {
        Some(declared) if declared.has_schema() || kind == "function" => declared,
        Some(_) if kind == "custom" && check_name(tool, path)? => {
            return Err(wrong(
                &format!("{path}.input_schema"),
                "must be a JSON Schema object",
            ));
        }
        None if ["custom", "function"].contains(&kind) => {
            return Err(wrong(&format!("{path}.name"), "is missing"));
        }
        _ => return Ok(None),
    };
    let definition = declared.read(path)?;
    let tool: Tool = fields_at(tool, path)?;
    let is_direct = tool
        .allowed_callers
        .is_none_or(|callers| callers.iter().any(|caller| caller == "direct"));
    if !is_direct {
        return Ok(None);
    }
    let examples = tool.input_examples.unwrap_or_default();
    let definition = ToolDefinition {
        description: with_examples(definition.description, examples),
        ..definition
    };
    Ok(Some((definition, tool.defer_loading == Some(true))))
}

/// Whether a tool has a name; an error where it is none.
fn check_name(tool: &Value, path: &str) -> Result<bool, Error> {
    match &tool["name"] {
        Value::String(name) if name.is_empty() => Err(wrong(&format!("{path}.name"), "is empty")),
        Value::String(_) => Ok(true),
        _ => Err(wrong(&format!("{path}.name"), "must be a string")),
    }
}

/// Templates have no other place for examples.
fn with_examples(description: Option<String>, examples: Vec<Value>) -> Option<String> {
    if examples.is_empty() {
        return description;
    }
    let mut text = description.unwrap_or_default();
    text.push_str("\n\nExamples of its input:");
    for example in examples {
        text.extend(["\n", &example.to_string()]);
    }
    Some(text.trim_start().to_owned())
}

fn read_choice(choice: &Value) -> Result<Choice, Error> {
    match choice {
        // OpenAI's way to say it, which some clients carry over.
        Value::String(kind) => Ok(Choice {
            r#type: kind.clone(),
            name: None,
            disable_parallel_tool_use: None,
        }),
        // The function of a chat completion is an object of its own; one of old has no type.
        Value::Object(fields) => {
            let mut fields = fields.clone();
            let name = fields.get("function").and_then(|inner| inner.get("name"));
            if let Some(name) = name.cloned() {
                fields.insert("name".to_owned(), name);
            }
            if fields.contains_key("name") {
                let kind = fields.entry("type").or_insert_with(|| "tool".into());
                if kind == "function" {
                    *kind = "tool".into();
                }
            }
            fields_at(&Value::Object(fields), "tool_choice")
        }
        choice => fields_at(choice, "tool_choice"),
    }
}

impl Choice {
    fn into_choice(self, offered: &[ToolDefinition]) -> Result<ToolChoice, Error> {
        let forced = match (self.r#type.as_str(), self.name) {
            ("auto", _) => return Ok(ToolChoice::Auto),
            ("none", _) => return Ok(ToolChoice::None),
            ("any" | "required", _) => ToolChoice::Required,
            ("tool", Some(name)) if offered.iter().any(|tool| tool.name == name) => {
                ToolChoice::Named(name)
            }
            ("tool", name) => {
                return Err(wrong(
                    "tool_choice.name",
                    &format!(
                        "must be the name of a tool on offer, not `{}`",
                        name.unwrap_or_default()
                    ),
                ));
            }
            (other, _) => {
                return Err(wrong(
                    "tool_choice.type",
                    &format!("must be auto, any, tool or none, not `{other}`"),
                ));
            }
        };
        if offered.is_empty() {
            return Err(wrong(
                "tool_choice",
                "asks for a call, but there is no tool to call",
            ));
        }
        Ok(forced)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn load(name: &str) -> ToolChange {
        ToolChange::Load(name.into())
    }

    fn tool(name: &str, is_deferred: bool) -> Value {
        json!({"name": name, "input_schema": {"type": "object"}, "defer_loading": is_deferred})
    }

    fn offered(declared: &[Value], changes: Vec<ToolChange>) -> Vec<String> {
        tools(declared, changes, None, None)
            .unwrap()
            .definitions
            .into_iter()
            .map(|tool| tool.name)
            .collect()
    }

    fn refused(declared: &Value, choice: Option<&Value>) -> String {
        match tools(declared.as_array().unwrap(), Vec::new(), choice, None).unwrap_err() {
            Error::Invalid { param, .. } => param.unwrap(),
            Error::Unsupported { param, .. } => param,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tools_with_a_schema_are_offered_and_hosted_ones_are_not() {
        let declared = [
            json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 8}),
            json!({"name": "a", "input_schema": {"type": "object"}, "cache_control": {}}),
            json!({"type": "custom", "name": "b", "input_schema": {}, "eager_input_streaming": true}),
            json!({"type": "bash_20250124", "name": "bash"}),
            json!({"name": "c", "input_schema": {}, "allowed_callers": ["code_execution_20250825"]}),
            json!({"type": "mcp_toolset", "mcp_server_name": "s"}),
        ];
        assert_eq!(offered(&declared, Vec::new()), ["a", "b"]);
    }

    #[test]
    fn deferred_tools_follow_the_standing_ones_as_they_are_found() {
        let declared = [
            tool("x", true),
            tool("a", false),
            tool("y", true),
            tool("b", false),
        ];
        assert_eq!(offered(&declared, Vec::new()), ["a", "b"]);
        let once = offered(&declared, vec![load("y"), load("gone"), load("a")]);
        assert_eq!(once, ["a", "b", "y"]);
        let both = offered(&declared, vec![load("y"), load("x"), load("y")]);
        assert_eq!(both, ["a", "b", "y", "x"]);
        // However the client orders its list, the prompt before stays a prefix.
        let moved = [
            tool("a", false),
            tool("b", false),
            tool("x", true),
            tool("y", true),
        ];
        assert_eq!(offered(&moved, vec![load("y"), load("x")]), both);
    }

    #[test]
    fn without_a_client_that_searches_nothing_is_deferred() {
        let declared = [
            tool("a", true),
            json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}),
        ];
        assert_eq!(offered(&declared, Vec::new()), ["a"]);
    }

    #[test]
    fn tools_come_and_go_in_the_conversation() {
        let define = ToolChange::Define {
            definition: json!({"name": "new", "input_schema": {}}),
            path: "messages[1].content[0].tool.definition".into(),
        };
        let changes = vec![define, ToolChange::Withdraw("a".into())];
        let declared = [tool("a", false), tool("b", false)];
        assert_eq!(offered(&declared, changes), ["b", "new"]);
        let back = vec![ToolChange::Withdraw("a".into()), load("a")];
        assert_eq!(offered(&declared, back), ["b", "a"]);
    }

    #[test]
    fn examples_are_told_with_the_description() {
        let declared = [json!({
            "name": "a",
            "description": "Adds.",
            "input_schema": {},
            "input_examples": [{"x": 1}],
        })];
        let tools = tools(&declared, Vec::new(), None, None).unwrap();
        assert_eq!(
            tools.definitions[0].description.as_deref(),
            Some("Adds.\n\nExamples of its input:\n{\"x\":1}")
        );
    }

    #[test]
    fn choices_are_read_from_each_spelling() {
        let declared = [tool("a", false), tool("d", true)];
        let choose = |choice: Value| {
            let tools = tools(&declared, Vec::new(), Some(&choice), None).unwrap();
            (tools.choice, tools.is_one_call_at_most)
        };
        assert_eq!(choose(json!(null)), (ToolChoice::Auto, false));
        assert_eq!(choose(json!({"type": "auto"})), (ToolChoice::Auto, false));
        assert_eq!(choose(json!("auto")), (ToolChoice::Auto, false));
        assert_eq!(choose(json!({"type": "none"})), (ToolChoice::None, false));
        assert_eq!(
            choose(json!({"type": "any", "disable_parallel_tool_use": true})),
            (ToolChoice::Required, true)
        );
        for name in ["a", "d"] {
            assert_eq!(
                choose(json!({"type": "tool", "name": name})),
                (ToolChoice::Named(name.into()), false)
            );
        }
    }

    #[test]
    fn wrong_tools_and_choices_are_named() {
        for (declared, param) in [
            (json!([1]), "tools[0]"),
            (json!([{"name": "a"}]), "tools[0].input_schema"),
            (
                json!([{"name": "a", "input_schema": []}]),
                "tools[0].input_schema",
            ),
            (json!([{"input_schema": {}}]), "tools[0].name"),
            (json!([{"name": "", "input_schema": {}}]), "tools[0].name"),
            (json!([{"name": 1, "input_schema": {}}]), "tools[0].name"),
            (json!([{"type": 1}]), "tools[0].type"),
            (json!([tool("a", false), tool("a", true)]), "tools[1].name"),
        ] {
            assert_eq!(refused(&declared, None), param, "{declared}");
        }
        let declared = json!([tool("a", false)]);
        for (choice, param) in [
            (json!({"type": "maybe"}), "tool_choice.type"),
            (json!({}), "tool_choice.type"),
            (json!({"type": "tool"}), "tool_choice.name"),
            (json!({"type": "tool", "name": "b"}), "tool_choice.name"),
            (json!(5), "tool_choice"),
        ] {
            assert_eq!(refused(&declared, Some(&choice)), param, "{choice}");
        }
        let any = json!({"type": "any"});
        assert_eq!(refused(&json!([]), Some(&any)), "tool_choice");
    }
}
