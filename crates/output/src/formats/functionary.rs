//! Functionary: v3.1 writes `<function=f>{…}</function>`, v3.2 `>>>f` and JSON on the next line,
//! or `>>>all` and text.

use super::{Format, Kind};
use crate::{
    Block, Sink, Step, Tools,
    grammar::{Calls, Pattern, Rules, Symbol, Wanted},
    readers::named_json::{NamedCalls, NamedJson},
    scan::{Starts, starts},
};

pub(super) static FUNCTIONARY_V31: NamedJson = NamedJson {
    name: "functionary_v31",
    detect: |template| template.contains("<function="),
    open: &["<function="],
    call_open: None,
    tool: |head| head.trim_end().strip_suffix('>'),
    must_be_offered: true,
    call_close: Some("</function>"),
    close: None,
    inner: &[],
    head: |rules, name| rules.literal(&format!("{name}>")),
    tail: "",
};

static CALL: NamedJson = NamedJson {
    name: "functionary_v32",
    detect: |template| template.contains(">>>all"),
    open: &[">>>"],
    call_open: None,
    tool: |head| head.strip_suffix('\n'),
    must_be_offered: true,
    call_close: None,
    close: None,
    inner: &[],
    head: |rules, name| rules.literal(&format!("{name}\n")),
    tail: "",
};

pub(super) static FUNCTIONARY_V32: FunctionaryV32 = FunctionaryV32;

#[derive(Debug)]
pub(super) struct FunctionaryV32;

/// The recipient that is the user.
const ALL: &str = "all\n";

impl Format for FunctionaryV32 {
    fn name(&self) -> &'static str {
        CALL.name()
    }

    fn kind(&self) -> Kind {
        CALL.kind()
    }

    fn detect(&self, template: &str) -> bool {
        CALL.detect(template)
    }

    fn open(&self) -> &'static [&'static str] {
        CALL.open()
    }

    fn block(&self, open: &'static str, tools: &Tools) -> Box<dyn Block> {
        Box::new(Recipient {
            call: CALL.reader(open, tools),
            has_begun: false,
        })
    }

    fn opened_by(&self, prompt: &str) -> Option<&'static str> {
        prompt.ends_with(">>>").then_some(">>>")
    }

    fn calls(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Option<Calls> {
        let calls = CALL.calls(rules, wanted)?;
        Some(Calls {
            // The template writes the first marker.
            bare: calls.marked.as_ref().map(|marked| marked.body.clone()),
            marked: calls.marked.filter(|_| !is_begun(rules)),
        })
    }

    fn answer(&self, rules: &mut Rules<'_>, answer: &Symbol) -> Option<Symbol> {
        let begin = rules.literal(if is_begun(rules) { ALL } else { ">>>all\n" });
        Some(Symbol::sequence([&begin, answer]))
    }

    fn free(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Option<Symbol> {
        let all = rules.literal(ALL);
        let marker = rules.literal(">>>");
        let text = rules.until(">>>");
        let text = Symbol::sequence([&all, &text]);
        let call = CALL.call(rules, wanted.tools);
        let part = Symbol::one_of([&text, &Symbol::sequence([&call, &marker])]);
        let part = rules.rule(&part).repeat();
        let last = rules.text(&Pattern::any().without(&[">>>"]));
        let last = Symbol::one_of([&Symbol::sequence([&all, &last]), &call]);
        let parts = Symbol::sequence([&part, &last]);
        Some(if is_begun(rules) {
            parts
        } else {
            Symbol::sequence([&marker, &parts])
        })
    }
}

/// Whether the prompt ends with the first marker.
fn is_begun(rules: &Rules<'_>) -> bool {
    rules.opened() == ">>>"
}

/// A call, or the head of text, which itself is read as text.
#[derive(Debug)]
struct Recipient {
    call: NamedCalls,
    has_begun: bool,
}

impl Block for Recipient {
    fn read(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        if !self.has_begun {
            match starts(text, ALL, is_last) {
                Starts::Yes => return Step::Over(ALL.len()),
                Starts::Maybe => return Step::Wait,
                Starts::No => self.has_begun = true,
            }
        }
        self.call.read(text, is_last, out)
    }
}
