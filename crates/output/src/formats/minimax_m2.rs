//! `<minimax:tool_call><invoke name="f"><parameter name="p">…</parameter></invoke>…`: `MiniMax` M2.

use crate::readers::tagged_format::{Tagged, Tags};

pub(super) static MINIMAX_M2: Tagged = Tagged {
    name: "minimax_m2",
    detect: |template| template.contains("<minimax:tool_call>"),
    open: &["<minimax:tool_call>"],
    close: "</minimax:tool_call>",
    tags: Tags {
        call: Some("<invoke name="),
        call_close: "</invoke>",
        key: "<parameter name=",
        key_close: ">",
        value: "",
        value_close: "</parameter>",
        has_lines: true,
        has_quotes: true,
        says_text: false,
    },
    shares_block: true,
};
