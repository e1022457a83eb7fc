//! `<longcat_tool_call>f<longcat_arg_key>p</longcat_arg_key><longcat_arg_value>…`: `LongCat` Flash.

use crate::readers::tagged_format::{Tagged, Tags};

pub(super) static LONGCAT: Tagged = Tagged {
    name: "longcat",
    detect: |template| template.contains("<longcat_tool_call>"),
    open: &["<longcat_tool_call>"],
    close: "</longcat_tool_call>",
    tags: Tags {
        call: None,
        call_close: "</longcat_tool_call>",
        key: "<longcat_arg_key>",
        key_close: "</longcat_arg_key>",
        value: "<longcat_arg_value>",
        value_close: "</longcat_arg_value>",
        has_lines: false,
        has_quotes: false,
        says_text: false,
    },
    shares_block: false,
};
