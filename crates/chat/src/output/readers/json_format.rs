//! Formats of calls as JSON objects, as data.

use serde_json::Value;

use super::json_calls::JsonCalls;
use crate::{
    grammar::{Callable, Calls, Rules, Symbol},
    output::{
        Block, Tools,
        formats::{Format, Kind},
    },
};

/// How a call begins that has no marker before it.
pub(in crate::output) const STARTS: &[&str] = &[
    r#"{"name":""#,
    r#"[{"name":""#,
    r#"{"type":"function""#,
    r#"[{"type":"function""#,
    r#"{"function":{"name":""#,
    r#"```json{"name":""#,
    r#"```json[{"name":""#,
];

/// A format of JSON objects between markers.
#[derive(Debug)]
pub(in crate::output) struct JsonFormat {
    pub(in crate::output) name: &'static str,
    pub(in crate::output) detect: fn(&str) -> bool,
    pub(in crate::output) open: &'static [&'static str],
    /// Texts that are a call's beginning at the start of the output.
    pub(in crate::output) starts: &'static [&'static str],
    /// Markers that mean nothing to a client.
    pub(in crate::output) silent: &'static [&'static str],
    /// `None`: the end of the output.
    pub(in crate::output) close: Option<&'static str>,
    /// How a call is begun for the model: with a marker or not, in a fence, in a list, and by
    /// which keys.
    pub(in crate::output) begins_bare: bool,
    pub(in crate::output) is_fenced: bool,
    pub(in crate::output) is_list: bool,
    pub(in crate::output) name_key: &'static str,
    pub(in crate::output) arguments_key: &'static str,
}

impl JsonFormat {
    pub(in crate::output) const fn new(name: &'static str, detect: fn(&str) -> bool) -> Self {
        Self {
            name,
            detect,
            open: &[],
            starts: &[],
            silent: &[],
            close: None,
            begins_bare: false,
            is_fenced: false,
            is_list: false,
            name_key: "name",
            arguments_key: "arguments",
        }
    }
}

impl Format for JsonFormat {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> Kind {
        Kind::ToolCalls
    }

    fn detect(&self, template: &str) -> bool {
        (self.detect)(template)
    }

    fn open(&self) -> &'static [&'static str] {
        self.open
    }

    fn open_at_start(&self, _tools: &Tools) -> Vec<String> {
        self.starts.iter().map(ToString::to_string).collect()
    }

    fn close(&self) -> Option<&'static str> {
        self.close
    }

    fn silent(&self) -> &'static [&'static str] {
        self.silent
    }

    fn block(&self, open: &'static str, tools: &Tools) -> Box<dyn Block> {
        // A marker that is no more than a word proves nothing.
        let is_word = !open.starts_with(['<', '[']);
        let offered = is_word.then_some(tools);
        Box::new(JsonCalls::new(self.close, self.open, offered))
    }

    fn calls(
        &self,
        rules: &mut Rules<'_>,
        tools: &[Callable<'_>],
        may_repeat: bool,
    ) -> Option<Calls> {
        let open = self.open.first().filter(|_| !self.begins_bare);
        let open = open.copied().unwrap_or_default();
        // Models write the pair of markers on lines of their own.
        let is_pair = self.close.is_some_and(|close| close.starts_with("</"));
        let (before, after) = match (self.is_fenced, is_pair) {
            (true, _) => (" ```json\n", "\n```"),
            (false, true) => ("\n", "\n"),
            (false, false) => ("", ""),
        };
        let (list_open, list_close) = if self.is_list { ("[", "]") } else { ("", "") };
        let object = self.object(rules, tools);
        let close = self.close.unwrap_or_default();
        let between = match (self.is_list, self.close) {
            (true, _) => Some(rules.literal(", ")),
            (false, Some(_)) => Some(rules.literal(&format!("{after}{close}\n{open}{before}"))),
            (false, None) => None,
        };
        let more = between.filter(|_| may_repeat).map(|between| {
            let next = Symbol::sequence([&between, &object]);
            rules.rule(&next).repeated()
        });
        let begin = rules.literal(&format!("{before}{list_open}"));
        let end = rules.literal(&format!("{list_close}{after}{close}"));
        let body = [Some(&begin), Some(&object), more.as_ref(), Some(&end)];
        Some(Calls {
            open: open.into(),
            body: Symbol::sequence(body.into_iter().flatten()),
        })
    }

    fn begin_call(&self, name: Option<&str>) -> Option<String> {
        let open = self.open.first().filter(|_| !self.begins_bare);
        let open = open.copied().unwrap_or_default();
        // Models write the pair of markers on lines of their own.
        let is_pair = self.close.is_some_and(|close| close.starts_with("</"));
        let line = match (self.is_fenced, is_pair) {
            (true, _) => " ```json\n",
            (false, true) => "\n",
            (false, false) => "",
        };
        let list = if self.is_list { "[" } else { "" };
        let begun = format!("{open}{line}{list}{{\"{}\":", self.name_key);
        Some(match name {
            Some(name) => format!("{begun} {}, \"{}\":", Value::from(name), self.arguments_key),
            None => begun,
        })
    }
}

impl JsonFormat {
    /// One call of any of the tools.
    fn object(&self, rules: &mut Rules<'_>, tools: &[Callable<'_>]) -> Symbol {
        let calls: Vec<Symbol> = tools
            .iter()
            .map(|callable| {
                let name = Value::from(callable.tool.name.as_str());
                let begin = format!(
                    "{{\"{}\": {name}, \"{}\": ",
                    self.name_key, self.arguments_key
                );
                let arguments = rules.arguments(callable);
                Symbol::sequence([&rules.literal(&begin), &arguments, &rules.literal("}")])
            })
            .collect();
        rules.rule(&Symbol::one_of(&calls))
    }
}
