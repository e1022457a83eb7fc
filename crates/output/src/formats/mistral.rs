//! `[TOOL_CALLS]`, followed by a JSON list of calls (Mistral 7B v0.3, Nemo) or by
//! `name[ARGS]{…}` once for each call, with `[CALL_ID]` and an id or not (Small 3.2, Devstral,
//! Magistral).

use super::{Format, Kind};
use crate::{
    Block, Tools,
    grammar::{Calls, Pattern, Rules, Symbol, Wanted},
    readers::{
        Either,
        json_calls::JsonCalls,
        json_format::{JsonFormat, Shape},
        named_json::NamedJson,
    },
};

const OPEN: &[&str] = &["[TOOL_CALLS]"];
const ARGS: &str = "[ARGS]";
const CALL_ID: &str = "[CALL_ID]";

static LIST: JsonFormat = JsonFormat {
    open: OPEN,
    shape: Shape::List,
    last_key: Some("id"),
    ..JsonFormat::new("mistral", |_| false)
};

static NAMED: NamedJson = NamedJson {
    name: "mistral_args",
    detect: |_| false,
    open: OPEN,
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
    head: |rules, name| {
        let id = rules.literal(CALL_ID);
        let id = Symbol::sequence([&id, &rules.text(&Pattern::regex("[A-Za-z0-9]{9}"))]);
        let [name, arguments] = [name, ARGS].map(|text| rules.literal(text));
        Symbol::sequence([&name, &id.optional(), &arguments])
    },
    tail: "",
};

/// Mistral's models write calls in one of two ways, by their age; both are read.
#[derive(Debug)]
pub(super) struct Mistral {
    name: &'static str,
    /// Newer: `name[ARGS]{…}`.
    is_named: bool,
}

pub(super) static MISTRAL: Mistral = Mistral {
    name: "mistral",
    is_named: false,
};

pub(super) static MISTRAL_ARGS: Mistral = Mistral {
    name: "mistral_args",
    is_named: true,
};

impl Format for Mistral {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> Kind {
        Kind::ToolCalls
    }

    fn detect(&self, template: &str) -> bool {
        template.contains(OPEN[0]) && (!self.is_named || template.contains(ARGS))
    }

    fn open(&self) -> &'static [&'static str] {
        OPEN
    }

    fn inner_markers(&self) -> Vec<&'static str> {
        vec![ARGS, CALL_ID]
    }

    fn block(&self, open: &'static str, tools: &Tools) -> Box<dyn Block> {
        let json = JsonCalls::new(None, OPEN, None);
        Box::new(Either::new(json, NAMED.reader(open, tools)))
    }

    fn calls(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Option<Calls> {
        if self.is_named {
            NAMED.calls(rules, wanted)
        } else {
            LIST.calls(rules, wanted)
        }
    }
}
