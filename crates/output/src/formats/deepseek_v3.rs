//! `<｜tool▁calls▁begin｜>` and a name with its JSON for each call: `DeepSeek` V3 and R1, which
//! fence the JSON, and V3.1, which does not. Either is read in both.

use crate::readers::named_json::NamedJson;

const SECTION: &str = "<｜tool▁calls▁begin｜>";
const CALL: &str = "<｜tool▁call▁begin｜>";
const SEPARATOR: &str = "<｜tool▁sep｜>";

pub(super) static DEEPSEEK_V3: NamedJson = NamedJson {
    name: "deepseek_v3",
    detect: |template| template.contains(SECTION) && template.contains("```json"),
    head: |rules, name| rules.literal(&format!("function{SEPARATOR}{name}\n```json\n")),
    tail: "\n```",
    ..DEEPSEEK_V31
};

pub(super) static DEEPSEEK_V31: NamedJson = NamedJson {
    name: "deepseek_v31",
    detect: |template| template.contains(SECTION),
    open: &[SECTION, "<｜tool▁calls｜>", "<｜tool_calls_begin｜>"],
    call_open: Some(CALL),
    tool: |head| {
        let (before, after) = head.split_once(SEPARATOR)?;
        let after = after.trim().trim_end_matches("```json").trim();
        Some(if after.is_empty() {
            before.trim()
        } else {
            after
        })
    },
    must_be_offered: false,
    call_close: Some("<｜tool▁call▁end｜>"),
    close: Some("<｜tool▁calls▁end｜>"),
    inner: &[SEPARATOR],
    head: |rules, name| rules.literal(&format!("{name}{SEPARATOR}")),
    tail: "",
};
