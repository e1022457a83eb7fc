//! `[TOOL_CALLS]`, followed by a JSON list of calls (Mistral 7B v0.3, Nemo) or by
//! `name[ARGS]{…}` once for each call, with `[CALL_ID]` and an id or not (Small 3.2, Devstral,
//! Magistral).

use super::{Format, Kind};
use crate::output::{
    Block, Tools,
    readers::{Either, json_calls::JsonCalls, named_json::NamedJson},
};

const ARGS: &str = "[ARGS]";
const CALL_ID: &str = "[CALL_ID]";

static NAMED: NamedJson = NamedJson {
    name: "mistral",
    detect: |template| template.contains("[TOOL_CALLS]"),
    open: &["[TOOL_CALLS]"],
    call_open: None,
    tool: |head| {
        let end = head.find(ARGS).unwrap_or(head.len());
        head[..end].split(CALL_ID).next().map(str::trim)
    },
    // The marker is text that anyone may write.
    must_be_offered: true,
    call_close: None,
    close: None,
    inner: &[ARGS, CALL_ID],
    begin: |name| match name {
        Some(name) => format!("[TOOL_CALLS]{name}{ARGS}"),
        None => "[TOOL_CALLS]".into(),
    },
};

#[derive(Debug)]
pub(super) struct Mistral;

impl Format for Mistral {
    fn name(&self) -> &'static str {
        NAMED.name()
    }

    fn kind(&self) -> Kind {
        NAMED.kind()
    }

    fn detect(&self, template: &str) -> bool {
        NAMED.detect(template)
    }

    fn open(&self) -> &'static [&'static str] {
        NAMED.open()
    }

    fn inner_markers(&self) -> Vec<&'static str> {
        NAMED.inner_markers()
    }

    fn block(&self, open: &'static str, tools: &Tools) -> Box<dyn Block> {
        let json = JsonCalls::new(None, self.open(), None);
        Box::new(Either::new(json, NAMED.reader(open, tools)))
    }

    fn begin_call(&self, name: Option<&str>) -> Option<String> {
        NAMED.begin_call(name)
    }
}
