//! `<|tool_call_start|>[f(p=1)]<|tool_call_end|>`: LFM2, which also writes JSON between them.

use crate::output::readers::literal_calls::{LiteralFormat, Notation};

pub(super) static LFM2: LiteralFormat = LiteralFormat {
    name: "lfm2",
    detect: |template| {
        template.contains("<|tool_call_start|>") || template.contains("<|tool_list_start|>")
    },
    is_bare: false,
    open: &["<|tool_call_start|>"],
    close: Some("<|tool_call_end|>"),
    notation: Notation::PYTHON,
};
