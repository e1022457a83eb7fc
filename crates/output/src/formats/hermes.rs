//! `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes, Qwen2.5, Qwen3, Granite 4 and
//! the models that follow them.

use crate::readers::json_format::{JsonFormat, STARTS};

pub(super) static HERMES: JsonFormat = JsonFormat {
    open: &["<tool_call>"],
    // Qwen2.5-Coder often leaves the markers out.
    starts: STARTS,
    close: Some("</tool_call>"),
    ..JsonFormat::new("hermes", |template| {
        template.contains("<tool_call>") && !template.contains("<invoke name=")
    })
};
