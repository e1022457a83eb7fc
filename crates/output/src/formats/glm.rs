//! `<tool_call>f<arg_key>p</arg_key><arg_value>…</arg_value></tool_call>`: GLM 4.5 (with line
//! breaks between the tags), 4.6 and 4.7.

use crate::readers::tagged_format::{Tagged, Tags};

pub(super) static GLM: Tagged = Tagged {
    name: "glm",
    detect: |template| template.contains("<arg_key>"),
    open: &["<tool_call>"],
    close: "</tool_call>",
    tags: Tags {
        call: None,
        call_close: "</tool_call>",
        key: "<arg_key>",
        key_close: "</arg_key>",
        value: "<arg_value>",
        value_close: "</arg_value>",
        has_lines: false,
        has_quotes: false,
        says_text: false,
    },
    shares_block: false,
};
