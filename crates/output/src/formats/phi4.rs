//! `<|tool_call|>[{"name": …, "arguments": {…}}]<|/tool_call|>`: Phi-4-mini, which also writes
//! `functools[…]`.

use crate::readers::json_format::{JsonFormat, Shape};

pub(super) static PHI4: JsonFormat = JsonFormat {
    open: &["<|tool_call|>", "functools"],
    close: Some("<|/tool_call|>"),
    shape: Shape::List,
    ..JsonFormat::new("phi4", |template| {
        template.contains("<|tool_call|>") || template.contains("<|tool|>")
    })
};
