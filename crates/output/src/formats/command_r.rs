//! `Action: ```json [{"tool_name": …, "parameters": {…}}] ``` `: Command R and R+ of 2024.

use crate::readers::json_format::{JsonFormat, Shape};

pub(super) static COMMAND_R: JsonFormat = JsonFormat {
    open: &["Action:"],
    shape: Shape::FencedList,
    is_indented: true,
    name_key: "tool_name",
    arguments_key: "parameters",
    ..JsonFormat::new("command_r", |template| {
        template.contains("<|START_OF_TURN_TOKEN|>") && template.contains("Action:")
    })
};
