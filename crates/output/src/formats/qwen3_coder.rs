//! `<tool_call><function=f><parameter=p>…</parameter></function></tool_call>`: Qwen3-Coder,
//! Qwen3.5, Nemotron 3 and `MiMo`.

use crate::readers::tagged_format::{Tagged, Tags};

/// Functions and parameters named in the tag, values on lines of their own.
pub(super) const FUNCTION_TAGS: Tags = Tags {
    call: Some("<function="),
    call_close: "</function>",
    key: "<parameter=",
    key_close: ">",
    value: "",
    value_close: "</parameter>",
    has_lines: true,
    has_quotes: false,
    says_text: false,
};

pub(super) static QWEN3_CODER: Tagged = Tagged {
    name: "qwen3_coder",
    detect: |template| template.contains("<function=") && template.contains("<parameter="),
    // The model often leaves the outer tag out.
    open: &["<tool_call>", "<function="],
    close: "</tool_call>",
    tags: FUNCTION_TAGS,
    shares_block: false,
};
