//! `<|tool_call_start|>[f(p=1)]<|tool_call_end|>`: LFM2, which also writes JSON between them.

use crate::readers::literal_calls::{LiteralFormat, Notation};

pub(super) static LFM2: LiteralFormat = LiteralFormat {
    name: "lfm2",
    detect: |template| {
        // The templates of LFM2.5 tell of tools without a marker.
        let signs = [
            "<|tool_call_start|>",
            "<|tool_list_start|>",
            "List of tools: [",
        ];
        signs.iter().any(|sign| template.contains(sign))
    },
    is_bare: false,
    open: &["<|tool_call_start|>"],
    close: Some("<|tool_call_end|>"),
    notation: Notation::PYTHON,
    string_mark: "\"",
};
