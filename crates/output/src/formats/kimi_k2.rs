//! `<|tool_calls_section_begin|>` and an id `functions.f:0` with its JSON for each call: Kimi K2.

use crate::{
    grammar::{Pattern, Symbol},
    readers::named_json::NamedJson,
};

const SECTION: &str = "<|tool_calls_section_begin|>";
const CALL: &str = "<|tool_call_begin|>";
const ARGUMENTS: &str = "<|tool_call_argument_begin|>";

pub(super) static KIMI_K2: NamedJson = NamedJson {
    name: "kimi_k2",
    detect: |template| template.contains(SECTION),
    // The section's marker is missing now and then.
    open: &[SECTION, CALL],
    call_open: Some(CALL),
    tool: |head| {
        let id = head.split(ARGUMENTS).next()?.trim();
        let id = id.strip_prefix("functions.").unwrap_or(id);
        match id.rsplit_once(':') {
            Some((name, index)) if index.bytes().all(|byte| byte.is_ascii_digit()) => Some(name),
            _ => Some(id),
        }
    },
    must_be_offered: false,
    call_close: Some("<|tool_call_end|>"),
    close: Some("<|tool_calls_section_end|>"),
    inner: &[ARGUMENTS],
    head: |rules, name| {
        let begin = rules.literal(&format!("functions.{name}:"));
        let index = rules.text(&Pattern::regex("[0-9]{1,3}"));
        Symbol::sequence([&begin, &index, &rules.literal(ARGUMENTS)])
    },
    tail: "",
};
