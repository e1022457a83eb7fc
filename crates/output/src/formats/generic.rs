//! Calls as JSON between markers, for models whose chat template takes no tools: how to write them is
//! told in the prompt.
//!
//! The notation is Hermes', which most models have seen. A model that writes the object alone or in
//! a Markdown fence calls as well.

use super::{Format, Kind};
use crate::{
    Block, Tools,
    grammar::{Calls, Marked, Rules, Symbol, Wanted},
    readers::json_format::JsonFormat,
};

/// What a call begins and ends with.
const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// A model that has not learnt to call may not find an end of it.
const CALLS_LIMIT: u64 = 16;

/// How calls are read.
static READ: JsonFormat = JsonFormat {
    open: &[OPEN],
    starts: &[r#"{"name":""#, r#"```json{"name":""#],
    close: Some(CLOSE),
    ..JsonFormat::new("generic", |_| false)
};

/// The notation for models without one of their own.
#[derive(Debug)]
pub(super) struct Generic;

/// A call as the grammar has models write it. `arguments`: JSON text.
pub fn write_call(name: &str, arguments: &str) -> String {
    let (head, tail) = around_arguments(name);
    format!("{OPEN}{head}{arguments}{tail}")
}

/// What stands between the opening marker and the arguments, and between these and the end.
fn around_arguments(name: &str) -> (String, String) {
    let name = serde_json::Value::from(name);
    (
        format!("\n{{\"name\": {name}, \"arguments\": "),
        format!("}}\n{CLOSE}"),
    )
}

impl Format for Generic {
    fn name(&self) -> &'static str {
        READ.name
    }

    fn kind(&self) -> Kind {
        Kind::ToolCalls
    }

    /// Never detects: this format is taken where a template takes no tools, whatever it contains.
    fn detect(&self, _template: &str) -> bool {
        false
    }

    fn open(&self) -> &'static [&'static str] {
        READ.open
    }

    fn open_at_start(&self, tools: &Tools) -> Vec<String> {
        READ.open_at_start(tools)
    }

    fn close(&self) -> Option<&'static str> {
        READ.close
    }

    fn block(&self, open: &'static str, tools: &Tools) -> Box<dyn Block> {
        READ.block(open, tools)
    }

    fn is_told(&self) -> bool {
        true
    }

    fn calls(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Option<Calls> {
        let calls: Vec<Symbol> = wanted
            .tools
            .iter()
            .map(|&callable| {
                let (head, tail) = around_arguments(callable.name());
                let arguments = rules.arguments(callable);
                Symbol::sequence([&rules.literal(&head), &arguments, &rules.literal(&tail)])
            })
            .collect();
        let call = rules.rule(&Symbol::one_of(&calls));
        let body = if wanted.may_repeat {
            let next = Symbol::sequence([&rules.literal(&format!("\n{OPEN}")), &call]);
            let more = rules.rule(&next).times(0, Some(CALLS_LIMIT - 1));
            Symbol::sequence([&call, &more])
        } else {
            call
        };
        // Where a call must be made there is one way to write it.
        let bare = wanted.beside_text.then(|| {
            let [plain, fenced] =
                [r"\s*\{", r"\s*```json\s*\{"].map(|begin| READ.object(rules, wanted.tools, begin));
            let end = rules.literal("\n```");
            Symbol::one_of([&plain, &Symbol::sequence([&fenced, &end])])
        });
        Some(Calls {
            marked: Some(Marked {
                open: OPEN.into(),
                body,
            }),
            bare,
        })
    }
}
