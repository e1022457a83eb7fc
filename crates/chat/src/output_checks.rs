//! What a request demands of the output beyond its format: a call at all, and arguments that
//! satisfy the schema of a strict tool.

use std::{collections::HashMap, sync::Arc};

use jsonschema::Validator;
use macmlx_inference::{InferenceError, ToolChoice, ToolDefinition};
use serde_json::Value;

/// The demands of one request; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputChecks {
    required: Required,
    /// By the names of strict tools.
    schemas: Arc<HashMap<String, Validator>>,
}

#[derive(Debug, Clone, Default)]
enum Required {
    #[default]
    Nothing,
    Call,
    CallOf(String),
}

impl OutputChecks {
    /// A strict tool whose schema cannot be compiled is refused. What stands in the schema of any
    /// other tool does not matter here.
    pub(crate) fn new(
        tools: &[ToolDefinition],
        choice: &ToolChoice,
    ) -> Result<Self, InferenceError> {
        let strict = tools.iter().filter(|tool| tool.strict);
        let schemas = strict
            .map(|tool| Ok((tool.name.clone(), compile(tool)?)))
            .collect::<Result<_, InferenceError>>()?;
        Ok(Self {
            required: match choice {
                ToolChoice::Auto | ToolChoice::None => Required::Nothing,
                ToolChoice::Required => Required::Call,
                ToolChoice::Named(name) => Required::CallOf(name.clone()),
            },
            schemas: Arc::new(schemas),
        })
    }

    /// Whether a tool's arguments must be seen whole before anyone else sees them.
    pub(crate) fn is_strict(&self, tool: &str) -> bool {
        self.schemas.contains_key(tool)
    }

    /// Whether a tool may be called.
    pub(crate) fn name(&self, tool: &str) -> Result<(), InferenceError> {
        match &self.required {
            Required::CallOf(name) if name != tool => Err(broken(format!(
                "it was to call `{name}` but called `{tool}`"
            ))),
            _ => Ok(()),
        }
    }

    /// Whether arguments satisfy the tool's schema, if that is strict.
    pub(crate) fn arguments(&self, tool: &str, arguments: &str) -> Result<(), InferenceError> {
        let Some(schema) = self.schemas.get(tool) else {
            return Ok(());
        };
        let value: Value = serde_json::from_str(arguments)
            .map_err(|error| broken(format!("the arguments of `{tool}` are no JSON: {error}")))?;
        schema.validate(&value).map_err(|error| {
            let at = error.instance_path().to_string();
            let at = if at.is_empty() {
                String::new()
            } else {
                format!(" at {at}")
            };
            broken(format!(
                "the arguments of `{tool}` break its strict schema{at}: {error}"
            ))
        })
    }

    /// Whether an output may end that has made calls or not.
    pub(crate) fn end(&self, made_calls: bool) -> Result<(), InferenceError> {
        match &self.required {
            Required::Call if !made_calls => {
                Err(broken("it was to call a tool but did not".into()))
            }
            Required::CallOf(name) if !made_calls => {
                Err(broken(format!("it was to call `{name}` but did not")))
            }
            _ => Ok(()),
        }
    }
}

fn broken(message: String) -> InferenceError {
    InferenceError::InvalidOutput { message }
}

fn compile(tool: &ToolDefinition) -> Result<Validator, InferenceError> {
    jsonschema::validator_for(&tool.parameters).map_err(|error| {
        let at = error.instance_path().to_string();
        let at = if at.is_empty() {
            String::new()
        } else {
            format!(" at {at}")
        };
        InferenceError::Unsupported {
            param: "tools".into(),
            reason: format!(
                "the schema of the strict tool `{}` cannot be used{at}: {error}",
                tool.name
            ),
        }
    })
}
