//! `Action: ```json [{"tool_name": …, "parameters": {…}}] ``` `: Command R and R+ of 2024.

use crate::output::readers::json_format::JsonFormat;

pub(super) static COMMAND_R: JsonFormat = JsonFormat {
    open: &["Action:"],
    is_list: true,
    is_indented: true,
    is_fenced: true,
    name_key: "tool_name",
    arguments_key: "parameters",
    ..JsonFormat::new("command_r", |template| {
        template.contains("<|START_OF_TURN_TOKEN|>") && template.contains("Action:")
    })
};
