//! `[f(p=1), g()]` as the whole answer, with `<|python_tag|>` or `<|python_start|>` before it or
//! not: Llama 4 and the small Llama 3.2.

use crate::readers::literal_calls::{LiteralFormat, Notation};

pub(super) static PYTHONIC: LiteralFormat = LiteralFormat {
    name: "pythonic",
    detect: |template| template.contains("func_name1(") || template.contains("(params_name1="),
    is_bare: true,
    open: &["<|python_tag|>", "<|python_start|>"],
    close: Some("<|python_end|>"),
    notation: Notation::PYTHON,
    string_mark: "\"",
};
