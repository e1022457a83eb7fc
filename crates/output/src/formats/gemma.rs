//! `call:f{p:<escape>…<escape>}` between markers: `FunctionGemma`, and Gemma 4 with `<|"|>`.

use crate::readers::literal_calls::{LiteralFormat, Notation};

pub(super) static FUNCTION_GEMMA: LiteralFormat = LiteralFormat {
    name: "function_gemma",
    detect: |template| template.contains("<start_function_call>"),
    is_bare: false,
    open: &["<start_function_call>"],
    close: Some("<end_function_call>"),
    notation: Notation::GEMMA,
    string_mark: "<escape>",
};

pub(super) static GEMMA4: LiteralFormat = LiteralFormat {
    name: "gemma4",
    detect: |template| template.contains("<|tool_call>"),
    is_bare: false,
    open: &["<|tool_call>"],
    close: Some("<tool_call|>"),
    notation: Notation::GEMMA,
    string_mark: "<|\"|>",
};
