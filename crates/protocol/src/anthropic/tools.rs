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
use crate::{Error, json::fields_at};

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
    name: String,
    description: Option<String>,
    input_schema: Option<Value>,
    input_examples: Option<Vec<Value>>,
    strict: Option<bool>,
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
) -> Result<Tools, Error> {
    let choice = choice.filter(|choice| !choice.is_null());
    let choice = choice.map(read_choice).transpose()?;
    let mut offer = Offer::default();
    // A search that is Anthropic's to run finds nothing here: its tools are offered at once.
    offer.is_searched = !declared.iter().any(is_hosted_search);
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
    Ok(Tools {
        is_one_call_at_most: choice
            .as_ref()
            .is_some_and(|choice| choice.disable_parallel_tool_use == Some(true)),
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
    let is_custom = match &tool["type"] {
        Value::Null => true,
        Value::String(kind) => kind == "custom",
        _ => return Err(wrong(&format!("{path}.type"), "must be a string")),
    };
    let has_schema = tool
        .get("input_schema")
        .is_some_and(|schema| !schema.is_null());
    if !is_custom && !has_schema {
        return Ok(None);
    }
    let tool: Tool = fields_at(tool, path)?;
    if tool.name.is_empty() {
        return Err(wrong(&format!("{path}.name"), "is empty"));
    }
    let Some(parameters @ Value::Object(_)) = tool.input_schema else {
        return Err(wrong(
            &format!("{path}.input_schema"),
            "must be a JSON Schema object",
        ));
    };
    if tool.strict == Some(true) {
        return Err(Error::unsupported(
            format!("{path}.strict"),
            "arguments cannot be constrained to the schema; leave `strict` out",
        ));
    }
    let is_direct = tool
        .allowed_callers
        .is_none_or(|callers| callers.iter().any(|caller| caller == "direct"));
    if !is_direct {
        return Ok(None);
    }
    let definition = ToolDefinition {
        description: with_examples(tool.description, tool.input_examples.unwrap_or_default()),
        name: tool.name,
        parameters,
        strict: false,
    };
    Ok(Some((definition, tool.defer_loading == Some(true))))
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
        choice => fields_at(choice, "tool_choice"),
    }
}

impl Choice {
    fn into_choice(self, offered: &[ToolDefinition]) -> Result<ToolChoice, Error> {
        let forced = match (self.r#type.as_str(), self.name) {
            ("auto", _) => return Ok(ToolChoice::Auto),
            ("none", _) => return Ok(ToolChoice::None),
            ("any", _) => ToolChoice::Required,
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
