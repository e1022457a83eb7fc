//! `{"name": …, "parameters": {…}}` as the whole answer, with or without `<|python_tag|>` before
//! it: Llama 3.1 to 4.

use crate::readers::json_format::{JsonFormat, STARTS};

pub(super) static LLAMA3_JSON: JsonFormat = JsonFormat {
    open: &["<|python_tag|>"],
    starts: STARTS,
    // Llama 4 puts them around the text before a call.
    silent: &["<|python_start|>", "<|python_end|>"],
    arguments_key: "parameters",
    begins_bare: true,
    ..JsonFormat::new("llama3_json", |template| {
        template.contains("<|python_tag|>")
            || template.contains(r#"{"name": function name, "parameters":"#)
    })
};
