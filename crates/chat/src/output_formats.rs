//! How one model writes: by its chat template, or as its folder says.

use std::path::Path;

use macmlx_inference::InferenceError;
use macmlx_output::formats::{self, Format, Kind};
use serde_json::Value;

use crate::{ChatTemplate, tokenizer::read_json};

/// A file in a model's folder that names formats which the template does not show: `{"tool_format":
/// "hermes", "reasoning_format": "none"}`.
const FILE: &str = "macmlx.json";

/// The formats of a model's output.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutputFormats {
    pub(crate) reasoning: Option<&'static dyn Format>,
    pub(crate) tool_calls: Option<&'static dyn Format>,
}

impl OutputFormats {
    /// `model` is the model's name in errors.
    pub(crate) fn load(
        model_dir: &Path,
        model: &str,
        template: Option<&ChatTemplate>,
    ) -> Result<Self, InferenceError> {
        let file = read_json(model_dir, FILE, model)?.unwrap_or_default();
        let format = |key: &str, kind| match read_choice(&file[key], kind) {
            Choice::Detected => Ok(template.and_then(|template| detect(template, kind))),
            Choice::None => Ok(None),
            Choice::Named(format) => Ok(Some(format)),
            Choice::Unknown => Err(InferenceError::ModelLoad {
                model: model.into(),
                reason: format!(
                    "`{key}` in {FILE} is {}, but can only be one of: {}, none",
                    file[key],
                    formats::names(kind).join(", ")
                ),
            }),
        };
        let reasoning = format("reasoning_format", Kind::Reasoning)?;
        let tool_calls = format("tool_format", Kind::ToolCalls)?;
        Ok(Self {
            reasoning,
            tool_calls: match (&file["tool_format"], template) {
                (Value::String(name), _) if name == "none" => None,
                // What it is told is what it can write.
                (_, Some(template)) if !template.reads_tools() => {
                    template.shows_told_tools().then(formats::generic)
                }
                _ => tool_calls,
            },
        })
    }
}

enum Choice {
    Detected,
    None,
    Named(&'static dyn Format),
    Unknown,
}

fn read_choice(value: &Value, kind: Kind) -> Choice {
    match value {
        Value::Null => Choice::Detected,
        Value::String(name) if name == "none" => Choice::None,
        Value::String(name) => formats::find(name, kind).map_or(Choice::Unknown, Choice::Named),
        _ => Choice::Unknown,
    }
}

fn detect(template: &ChatTemplate, kind: Kind) -> Option<&'static dyn Format> {
    let is_tools = kind == Kind::ToolCalls;
    let found = formats::detect(template.source(is_tools), kind);
    found.or_else(|| (is_tools && template.reads_tools()).then(formats::without_markers))
}
