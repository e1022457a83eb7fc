//! `<|tool_call|>[{"name": …, "arguments": {…}}]` to the end of the output: Granite 3.

use crate::readers::json_format::{JsonFormat, Shape};

pub(super) static GRANITE: JsonFormat = JsonFormat {
    open: &["<|tool_call|>", "<tool_call>"],
    shape: Shape::List,
    ..JsonFormat::new("granite", |template| {
        template.contains("<|start_of_role|>")
            && template.contains("tools")
            && (template.contains("<|tool_call|>") || !template.contains("<tool_call>"))
    })
};
