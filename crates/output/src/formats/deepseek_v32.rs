//! DSML, `DeepSeek`'s tags, whose parameters say themselves whether they are text: V3.2
//! and V4.

use crate::readers::tagged_format::{Tagged, Tags};

/// V4 names the block differently.
pub(super) static DEEPSEEK_V4: Tagged = Tagged {
    name: "deepseek_v4",
    detect: |template| template.contains("｜DSML｜") && !template.contains("function_calls>"),
    open: &["<｜DSML｜tool_calls>"],
    close: "</｜DSML｜tool_calls>",
    tags: DSML,
    shares_block: true,
};

pub(super) static DEEPSEEK_V32: Tagged = Tagged {
    name: "deepseek_v32",
    detect: |template| template.contains("｜DSML｜"),
    open: &["<｜DSML｜function_calls>"],
    close: "</｜DSML｜function_calls>",
    tags: DSML,
    shares_block: true,
};

const DSML: Tags = Tags {
    call: Some("<｜DSML｜invoke name="),
    call_close: "</｜DSML｜invoke>",
    key: "<｜DSML｜parameter name=",
    key_close: ">",
    value: "",
    value_close: "</｜DSML｜parameter>",
    has_lines: false,
    has_quotes: true,
    says_text: true,
};
