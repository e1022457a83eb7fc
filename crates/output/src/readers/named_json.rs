//! Calls as a name and, behind it, the JSON object of arguments.

use crate::{
    Block, Sink, Step, Tools,
    formats::{Format, Kind},
    grammar::{Callable, Calls, Rules, Symbol, Wanted},
    scan::{space, starts_with_any},
    value_end::{End, Quotes, ValueEnd},
};

/// The name of a call and what belongs to it is never longer than this.
const HEAD_LIMIT: usize = 256;

/// A format of named JSON objects.
#[derive(Debug)]
pub(crate) struct NamedJson {
    pub(crate) name: &'static str,
    pub(crate) detect: fn(&str) -> bool,
    /// Begins a block.
    pub(crate) open: &'static [&'static str],
    /// Begins each call in a block; `None`: the opening marker begins the only one.
    pub(crate) call_open: Option<&'static str>,
    /// The tool's name in the text between the beginning of a call and its object.
    pub(crate) tool: fn(&str) -> Option<&str>,
    /// The text alone does not make it a call, the tool must be offered too.
    pub(crate) must_be_offered: bool,
    pub(crate) call_close: Option<&'static str>,
    pub(crate) close: Option<&'static str>,
    /// Markers within, beside those above.
    pub(crate) inner: &'static [&'static str],
    /// How a call is written between its beginning and its object, by the tool's name.
    pub(crate) head: fn(&mut Rules<'_>, &str) -> Symbol,
    /// Text between the object and the end of the call.
    pub(crate) tail: &'static str,
}

impl Format for NamedJson {
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

    fn close(&self) -> Option<&'static str> {
        self.close
    }

    fn inner_markers(&self) -> Vec<&'static str> {
        let ends = self.call_open.into_iter().chain(self.call_close);
        ends.chain(self.inner.iter().copied()).collect()
    }

    fn block(&self, open: &'static str, tools: &Tools) -> Box<dyn Block> {
        Box::new(self.reader(open, tools))
    }

    fn calls(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Option<Calls> {
        let call = self.call(rules, wanted.tools);
        let line = Rules::line();
        let next = match self.call_open {
            Some(marker) => Symbol::sequence([&line, &rules.literal(marker), &call]),
            None => Symbol::sequence([&rules.literal(self.open[0]), &call]),
        };
        let more = wanted.may_repeat.then(|| rules.rule(&next).repeat());
        let begin = rules.literal(self.call_open.unwrap_or_default());
        let end = self
            .close
            .map(|close| Symbol::sequence([&line, &rules.literal(close)]));
        let parts = [Some(begin), Some(call), more, end];
        let body = Symbol::sequence(parts.iter().flatten());
        Some(Calls::with_marker(self.open[0], body))
    }
}

impl NamedJson {
    /// One call of any of the tools, without the marker before it.
    pub(crate) fn call(&self, rules: &mut Rules<'_>, tools: &[Callable<'_>]) -> Symbol {
        let tail = format!("{}{}", self.tail, self.call_close.unwrap_or_default());
        let tail = rules.literal(&tail);
        let calls: Vec<Symbol> = tools
            .iter()
            .map(|&callable| {
                let head = (self.head)(rules, callable.name());
                let arguments = rules.arguments(callable);
                let call = Symbol::sequence([&head, &arguments, &tail]);
                rules.rule(&call)
            })
            .collect();
        rules.rule(&Symbol::one_of(&calls))
    }

    pub(crate) fn reader(&self, open: &str, tools: &Tools) -> NamedCalls {
        let is_head = self.call_open.is_none_or(|marker| marker == open);
        let stops = self.call_close.into_iter().chain(self.close);
        NamedCalls {
            tool: self.tool,
            offered: self.must_be_offered.then(|| tools.clone()),
            call_open: self.call_open,
            call_close: self.call_close,
            close: self.close,
            stops: stops
                .chain(self.call_open)
                .chain(self.open.iter().copied())
                .collect(),
            state: if is_head { State::Head } else { State::Open },
        }
    }
}

#[derive(Debug)]
pub(crate) struct NamedCalls {
    tool: fn(&str) -> Option<&str>,
    offered: Option<Tools>,
    call_open: Option<&'static str>,
    call_close: Option<&'static str>,
    close: Option<&'static str>,
    /// What ends arguments that are not complete.
    stops: Vec<&'static str>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The reader is before the first call.
    Open,
    Head,
    Arguments(ValueEnd),
    /// The reader is behind the arguments.
    Tail,
    Between,
}

impl NamedCalls {
    fn open(&mut self, text: &str, is_last: bool) -> Step {
        let space = space(text);
        let markers: Vec<&str> = self.call_open.into_iter().collect();
        match starts_with_any(&text[space..], &markers, is_last) {
            Err(()) => Step::Wait,
            Ok(Some(marker)) => {
                self.state = State::Head;
                Step::Took(space + marker.len())
            }
            Ok(None) => Step::Text,
        }
    }

    fn head(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let Some(brace) = text.find('{') else {
            let is_over = text.len() > HEAD_LIMIT || is_last;
            return if is_over { Step::Text } else { Step::Wait };
        };
        let name = (self.tool)(&text[..brace])
            .filter(|name| {
                !name.is_empty()
                    && !name.contains(|c: char| c.is_whitespace() || "<>{}".contains(c))
            })
            .filter(|name| self.offered.as_ref().is_none_or(|tools| tools.offers(name)));
        match name {
            Some(name) if brace <= HEAD_LIMIT => {
                out.start(name);
                self.state = State::Arguments(ValueEnd::new(Quotes::Json, self.stops.clone()));
                Step::Took(brace)
            }
            _ => Step::Text,
        }
    }

    fn arguments(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let State::Arguments(end) = &mut self.state else {
            return Step::Wait;
        };
        let scanned = end.scan(text, is_last);
        out.arguments(&text[..scanned.len]);
        if scanned.end != End::Open {
            self.state = State::Tail;
        } else if scanned.len == 0 {
            return Step::Wait;
        }
        Step::Took(scanned.len)
    }

    /// The closing marker, perhaps behind a fence.
    fn tail(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == '`');
        let skipped = text.len() - rest.len();
        let markers: Vec<&str> = self.call_close.into_iter().collect();
        let len = match starts_with_any(rest, &markers, is_last) {
            Err(()) => return Step::Wait,
            Ok(Some(marker)) => skipped + marker.len(),
            Ok(None) if rest.is_empty() && is_last => skipped,
            Ok(None) => 0,
        };
        out.end();
        if self.call_open.is_none() {
            return Step::Over(len);
        }
        self.state = State::Between;
        Step::Took(len)
    }

    fn between(&mut self, text: &str, is_last: bool) -> Step {
        let space = space(text);
        let markers: Vec<&str> = self.call_open.into_iter().chain(self.close).collect();
        match starts_with_any(&text[space..], &markers, is_last) {
            Err(()) => Step::Wait,
            Ok(Some(marker)) if Some(marker) == self.close => Step::Over(space + marker.len()),
            Ok(Some(marker)) => {
                self.state = State::Head;
                Step::Took(space + marker.len())
            }
            Ok(None) if space == text.len() && !is_last => Step::Wait,
            Ok(None) => Step::Over(0),
        }
    }
}

impl Block for NamedCalls {
    fn read(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        match self.state {
            State::Open => self.open(text, is_last),
            State::Head => self.head(text, is_last, out),
            State::Arguments(_) => self.arguments(text, is_last, out),
            State::Tail => self.tail(text, is_last, out),
            State::Between => self.between(text, is_last),
        }
    }
}
