//! `<|START_ACTION|>[{"tool_call_id": …, "tool_name": …, "parameters": {…}}]<|END_ACTION|>`:
//! Command R7B and Command A.

use crate::readers::json_format::{JsonFormat, Shape};

pub(super) static COMMAND_R7B: JsonFormat = JsonFormat {
    open: &["<|START_ACTION|>"],
    close: Some("<|END_ACTION|>"),
    shape: Shape::List,
    is_indented: true,
    first_key: Some("tool_call_id"),
    name_key: "tool_name",
    arguments_key: "parameters",
    ..JsonFormat::new("command_r7b", |template| {
        template.contains("<|START_ACTION|>")
    })
};
