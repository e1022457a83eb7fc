//! Functionary: v3.1 writes `<function=f>{…}</function>`, v3.2 `>>>f` and JSON on the next line,
//! or `>>>all` and text.

use super::{Format, Kind};
use crate::output::{
    Block, Sink, Step, Tools,
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
    begin: |name| match name {
        Some(name) => format!("<function={name}>"),
        None => "<function=".into(),
    },
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
    begin: |name| name.map_or_else(String::new, |name| format!("{name}\n")),
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

    fn begin_call(&self, name: Option<&str>) -> Option<String> {
        // Without a name the model could still choose to speak to the user.
        name.map(|name| (CALL.begin)(Some(name)))
    }
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
