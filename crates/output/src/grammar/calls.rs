//! Tools as grammars see them, and how a format writes calls of them.

use macmlx_inference::ToolDefinition;

use super::{parameters::Parameters, rules::Symbol, schema};

/// The calls that an output may make.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub tools: &'a [Callable<'a>],
    /// More than one.
    pub may_repeat: bool,
    /// Any text may stand in their place.
    pub beside_text: bool,
}

/// How a format writes calls: one or several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calls {
    /// Calls behind a marker, which may stand anywhere.
    pub marked: Option<Marked>,
    /// Calls that nothing marks, which only an output can begin with.
    pub bare: Option<Symbol>,
}

/// Calls behind a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    pub open: String,
    /// All that follows `open`, up to the end of the last call.
    pub body: Symbol,
}

/// A tool that may be called.
#[derive(Debug, Clone, Copy)]
pub struct Callable<'a> {
    pub tool: &'a ToolDefinition,
}

impl Calls {
    pub fn with_marker(open: impl Into<String>, body: Symbol) -> Self {
        Self {
            marked: Some(Marked {
                open: open.into(),
                body,
            }),
            bare: None,
        }
    }

    pub fn bare(call: Symbol) -> Self {
        Self {
            marked: None,
            bare: Some(call),
        }
    }
}

impl<'a> Callable<'a> {
    pub fn name(self) -> &'a str {
        &self.tool.name
    }

    /// The arguments one by one. `None`: the schema says things about them that can only be said
    /// of the object as a whole, so it must be written as JSON.
    pub fn parameters(self) -> Option<Parameters> {
        let schema = &self.tool.parameters;
        if self.tool.strict {
            return Parameters::of(schema, schema, true);
        }
        let schema = schema::loosen(schema)?;
        Parameters::of(&schema, &schema, false)
    }
}
