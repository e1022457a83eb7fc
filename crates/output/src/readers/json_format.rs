//! Formats of calls as JSON objects, as data.

use serde_json::Value;

use super::json_calls::JsonCalls;
use crate::{
    Block, Tools,
    formats::{Format, Kind},
    grammar::{Callable, Calls, Marked, Pattern, Rules, Symbol, Wanted},
};

/// How a call begins that has no marker before it.
pub(crate) const STARTS: &[&str] = &[
    r#"{"name":""#,
    r#"[{"name":""#,
    r#"{"type":"function""#,
    r#"[{"type":"function""#,
    r#"{"function":{"name":""#,
    r#"```json{"name":""#,
    r#"```json[{"name":""#,
];

/// How several calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An object each, between markers of its own if there are any.
    Objects,
    List,
    /// The list is in a Markdown fence.
    FencedList,
}

/// A format of JSON objects between markers.
#[derive(Debug)]
pub(crate) struct JsonFormat {
    pub(crate) name: &'static str,
    pub(crate) detect: fn(&str) -> bool,
    pub(crate) open: &'static [&'static str],
    /// Texts that are a call's beginning at the start of the output.
    pub(crate) starts: &'static [&'static str],
    /// Markers that mean nothing to a client.
    pub(crate) silent: &'static [&'static str],
    /// `None`: the end of the output.
    pub(crate) close: Option<&'static str>,
    /// Models leave the marker out.
    pub(crate) begins_bare: bool,
    pub(crate) shape: Shape,
    /// Brackets and keys may stand on lines of their own.
    pub(crate) is_indented: bool,
    /// Key of an id before the name, which models write or leave out.
    pub(crate) first_key: Option<&'static str>,
    pub(crate) name_key: &'static str,
    pub(crate) arguments_key: &'static str,
    /// Key of an id behind the arguments, likewise.
    pub(crate) last_key: Option<&'static str>,
}

impl JsonFormat {
    pub(crate) const fn new(name: &'static str, detect: fn(&str) -> bool) -> Self {
        Self {
            name,
            detect,
            open: &[],
            starts: &[],
            silent: &[],
            close: None,
            begins_bare: false,
            shape: Shape::Objects,
            is_indented: false,
            first_key: None,
            name_key: "name",
            arguments_key: "arguments",
            last_key: None,
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

    fn calls(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Option<Calls> {
        let marked = self.open.first().map(|open| {
            let body = self.block_body(rules, wanted, open);
            Marked {
                open: (*open).into(),
                body,
            }
        });
        let bare = self.begins_bare.then(|| {
            // Text and JSON are told apart by different lexers, so each has its own way.
            let [first, next] = if wanted.beside_text {
                [r"\s*\{", r"\{"].map(|begin| self.object(rules, wanted.tools, begin))
            } else {
                let object = self.whole_object(rules, wanted.tools);
                [object.clone(), object]
            };
            several(rules, &first, &next, wanted.may_repeat)
        });
        Some(Calls { marked, bare })
    }
}

impl JsonFormat {
    /// White space behind an opening bracket and before a closing one, and behind a separator.
    fn spaces(&self) -> (&'static str, &'static str) {
        if self.is_indented {
            (r"[ ]?|\n[ ]{0,12}", r"[ ]?|\n[ ]{0,12}")
        } else {
            ("", " ?")
        }
    }

    fn space(&self, rules: &mut Rules<'_>) -> Symbol {
        match self.spaces().0 {
            "" => rules.literal(""),
            space => rules.text(&Pattern::regex(space)),
        }
    }

    /// What follows a marker.
    fn block_body(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>, open: &str) -> Symbol {
        let may_repeat = wanted.may_repeat;
        let object = self.object(rules, wanted.tools, r"\{");
        let close = rules.literal(self.close.unwrap_or_default());
        let space = self.space(rules);
        let list = |rules: &mut Rules<'_>| {
            let next = rules.text(&Pattern::regex(&format!(",({})", self.spaces().1)));
            let more = Symbol::sequence([&next, &object]);
            let more = if may_repeat {
                more.repeat()
            } else {
                rules.literal("")
            };
            let [open, close] = ["[", "]"].map(|bracket| rules.literal(bracket));
            Symbol::sequence([&open, &space, &object, &more, &space, &close])
        };
        if self.shape == Shape::FencedList {
            let [begin, end] = [" ```json\n", "\n```"].map(|fence| rules.literal(fence));
            return Symbol::sequence([&begin, &list(rules), &end, &close]);
        }
        if self.shape == Shape::List {
            let before = rules.literal(" ").optional();
            return Symbol::sequence([&before, &list(rules), &space, &close]);
        }
        let Some(_) = self.close else {
            return several(rules, &object, &object, may_repeat);
        };
        let line = Rules::line();
        let block = Symbol::sequence([&line, &object, &line, &close]);
        if !may_repeat {
            return block;
        }
        let next = Symbol::sequence([&line, &rules.literal(open), &block]);
        Symbol::sequence([&block, &rules.rule(&next).repeat()])
    }

    /// One call of any of the tools. `begin`: a regular expression for all before the first key.
    pub(crate) fn object(
        &self,
        rules: &mut Rules<'_>,
        tools: &[Callable<'_>],
        begin: &str,
    ) -> Symbol {
        let (inside, behind) = self.spaces();
        let space = self.space(rules);
        let before = rules.literal(" ").optional();
        let calls: Vec<Symbol> = tools
            .iter()
            .map(|&callable| {
                let gap = Pattern::regex(behind);
                let begin = Pattern::regex(&format!("{begin}({inside})"));
                let first = self.first_key.map(|key| {
                    let key = Pattern::exactly(&format!("\"{key}\":"));
                    let id = Pattern::regex("\"[A-Za-z0-9_-]{1,24}\",");
                    key.then(&gap).then(&id).then(&gap).optional()
                });
                let begin = first.map_or(begin.clone(), |first| begin.then(&first));
                let name = Value::from(callable.name());
                let head = begin
                    .then(&Pattern::exactly(&format!("\"{}\":", self.name_key)))
                    .then(&gap)
                    .then(&Pattern::exactly(&format!("{name},")))
                    .then(&gap);
                let head = rules.end_with(&head, &format!("\"{}\":", self.arguments_key));
                let last = self.last_key.map(|key| {
                    let id = format!(", ?\"{key}\": ?\"[A-Za-z0-9]{{9}}\"");
                    rules.text(&Pattern::regex(&id)).optional()
                });
                let arguments = rules.arguments(callable);
                let close = rules.literal("}");
                let parts = [
                    Some(&head),
                    Some(&before),
                    Some(&arguments),
                    last.as_ref(),
                    Some(&space),
                    Some(&close),
                ];
                Symbol::sequence(parts.into_iter().flatten())
            })
            .collect();
        rules.rule(&Symbol::one_of(&calls))
    }

    /// The same as one JSON text, for where other JSON may stand in its place.
    fn whole_object(&self, rules: &mut Rules<'_>, tools: &[Callable<'_>]) -> Symbol {
        let calls: Vec<Symbol> = tools
            .iter()
            .map(|&callable| rules.call_object(callable, self.name_key, self.arguments_key))
            .collect();
        rules.rule(&Symbol::one_of(&calls))
    }
}

/// Objects one after the other, to the end of the output.
fn several(rules: &mut Rules<'_>, first: &Symbol, next: &Symbol, may_repeat: bool) -> Symbol {
    if !may_repeat {
        return first.clone();
    }
    let between = Symbol::one_of([&rules.literal("; "), &Rules::line()]);
    let next = Symbol::sequence([&between, next]);
    Symbol::sequence([first, &rules.rule(&next).repeat()])
}
