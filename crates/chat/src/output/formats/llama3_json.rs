//! `{"name": …, "parameters": {…}}` as the whole answer, with or without `<|python_tag|>` before
//! it: Llama 3.1, 3.2 and 3.3.

use crate::output::readers::json_calls::{JsonFormat, STARTS};

pub(super) static LLAMA3_JSON: JsonFormat = JsonFormat {
    open: &["<|python_tag|>"],
    starts: STARTS,
    arguments_key: "parameters",
    begins_bare: true,
    ..JsonFormat::new("llama3_json", |template| {
        template.contains("<|python_tag|>")
            || template.contains(r#"{"name": function name, "parameters":"#)
    })
};
