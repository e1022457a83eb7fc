//! Calls written like those of a programming language, arguments as its literals: Python's, and
//! Gemma's notation.

use crate::{
    Block, Sink, Step, Tools,
    argument::{ArgumentsWriter, write_as_json},
    formats::{Format, Kind},
    grammar::{Calls, Rules, Wanted},
    literal,
    readers::{Either, json_calls::JsonCalls},
    scan::{Starts, space, starts, starts_with_any},
    value_end::{End, Quotes, ValueEnd},
};

/// Names are never longer than this.
const NAME_LIMIT: usize = 256;

/// A format of literal calls.
#[derive(Debug)]
pub(crate) struct LiteralFormat {
    pub(crate) name: &'static str,
    pub(crate) detect: fn(&str) -> bool,
    /// A list of calls may be the whole output, without a marker; then only offered tools count.
    pub(crate) is_bare: bool,
    pub(crate) open: &'static [&'static str],
    pub(crate) close: Option<&'static str>,
    pub(crate) notation: Notation,
    /// What stands around strings.
    pub(crate) string_mark: &'static str,
}

/// How a call is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notation {
    /// Stands before each name.
    pub(crate) prefix: &'static str,
    pub(crate) bracket: char,
    pub(crate) assign: char,
    pub(crate) quotes: Quotes,
    /// Calls stand in square brackets.
    pub(crate) in_list: bool,
}

impl Notation {
    pub(crate) const PYTHON: Self = Self {
        prefix: "",
        bracket: '(',
        assign: '=',
        quotes: Quotes::Python,
        in_list: true,
    };
    pub(crate) const GEMMA: Self = Self {
        prefix: "call:",
        bracket: '{',
        assign: ':',
        quotes: Quotes::Gemma,
        in_list: false,
    };

    fn closing(self) -> char {
        if self.bracket == '(' { ')' } else { '}' }
    }
}

impl Format for LiteralFormat {
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

    fn open_at_start(&self, tools: &Tools) -> Vec<String> {
        let tools = tools.iter().filter(|_| self.is_bare);
        tools.map(|tool| format!("[{}(", tool.name)).collect()
    }

    fn close(&self) -> Option<&'static str> {
        self.close
    }

    fn inner_markers(&self) -> Vec<&'static str> {
        let marks = self.notation.quotes.marks().iter().copied();
        marks.filter(|mark| mark.starts_with('<')).collect()
    }

    fn block(&self, open: &'static str, tools: &Tools) -> Box<dyn Block> {
        let reader = LiteralCalls {
            notation: self.notation,
            close: self.close,
            open: self.open,
            must_be_offered: self.is_bare,
            tools: tools.clone(),
            state: State::Start,
            in_list: false,
            tool: String::new(),
            arguments: ArgumentsWriter::default(),
        };
        if self.notation.in_list && !open.is_empty() {
            let offered = self.is_bare.then_some(tools);
            let json = JsonCalls::new(self.close, self.open, offered);
            return Box::new(Either::new(json, reader));
        }
        Box::new(reader)
    }

    fn calls(&self, rules: &mut Rules<'_>, wanted: &Wanted<'_>) -> Option<Calls> {
        Some(self.write_calls(rules, wanted))
    }
}

#[derive(Debug)]
struct LiteralCalls {
    notation: Notation,
    close: Option<&'static str>,
    open: &'static [&'static str],
    must_be_offered: bool,
    tools: Tools,
    state: State,
    in_list: bool,
    tool: String,
    arguments: ArgumentsWriter,
}

#[derive(Debug)]
enum State {
    Start,
    Name,
    /// The reader is between arguments.
    Arguments,
    /// The reader is behind an argument's name. The fields are the name, the end of the value and
    /// how far the value has been read.
    Value(String, ValueEnd, usize),
    Between,
}

impl LiteralCalls {
    fn start(&mut self, text: &str, is_last: bool) -> Step {
        let space = space(text);
        let rest = &text[space..];
        if self.notation.in_list && !self.in_list && rest.starts_with('[') {
            self.in_list = true;
            return Step::Took(space + 1);
        }
        if rest.is_empty() {
            return Step::Wait;
        }
        let prefix = self.notation.prefix;
        match starts(rest, prefix, is_last) {
            Starts::Maybe => Step::Wait,
            Starts::No if !prefix.is_empty() => Step::Text,
            Starts::No | Starts::Yes => {
                self.state = State::Name;
                Step::Took(space + prefix.len())
            }
        }
    }

    fn name(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let is_part = |c: char| c.is_alphanumeric() || "_.-:/".contains(c);
        let Some(len) = text.find(|c| !is_part(c)) else {
            let is_over = is_last || text.len() > NAME_LIMIT;
            return if is_over { Step::Text } else { Step::Wait };
        };
        let name = &text[..len];
        let is_call = text[len..].starts_with(self.notation.bracket)
            && (1..=NAME_LIMIT).contains(&len)
            && (!self.must_be_offered || self.tools.offers(name));
        if !is_call {
            return Step::Text;
        }
        out.start(name);
        self.tool = name.into();
        self.state = State::Arguments;
        Step::Took(len + 1)
    }

    fn value_end(&self) -> ValueEnd {
        let stops = self.close.into_iter().chain(self.open.iter().copied());
        ValueEnd::new(self.notation.quotes, stops.collect())
    }

    fn arguments(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let skipped = text.len() - rest.len();
        let markers: Vec<&str> = self.close.into_iter().collect();
        match (
            rest.chars().next(),
            starts_with_any(rest, &markers, is_last),
        ) {
            (None, _) if is_last => {
                self.arguments.close(out);
                return Step::Over(skipped);
            }
            (None, _) | (_, Err(())) => return Step::Wait,
            (Some(first), _) if first == self.notation.closing() => {
                self.arguments.close(out);
                self.state = State::Between;
                return Step::Took(skipped + 1);
            }
            // The bracket that closes the call is missing.
            (Some(_), Ok(Some(_))) => {
                self.arguments.close(out);
                self.state = State::Between;
                return Step::Took(skipped);
            }
            (Some(_), Ok(None)) => {}
        }
        let Some((key, len)) = self.key(rest, is_last) else {
            return Step::Wait;
        };
        self.arguments.key(&key, out);
        self.state = State::Value(key, self.value_end(), 0);
        Step::Took(skipped + len)
    }

    /// The name of an argument and where its value begins; by its place when it has none.
    fn key(&self, text: &str, is_last: bool) -> Option<(String, usize)> {
        let by_place = || {
            let index = self.arguments.count();
            let name = self.tools.parameter_at(&self.tool, index);
            Some((name.map_or_else(|| index.to_string(), str::to_owned), 0))
        };
        let quotes = self.notation.quotes;
        if quotes == Quotes::Gemma {
            // A name may stand in quotes.
            match starts_with_any(text, quotes.marks(), is_last) {
                Err(()) => return None,
                Ok(Some(_)) => {
                    return match literal::leading_string(text, quotes) {
                        Some((key, after)) => {
                            let colon = after + space(&text[after..]);
                            match text[colon..].chars().next() {
                                None if !is_last => None,
                                Some(next) if next == self.notation.assign => {
                                    Some((key, colon + 1))
                                }
                                _ => by_place(),
                            }
                        }
                        None if is_last => by_place(),
                        None => None,
                    };
                }
                Ok(None) => {}
            }
        }
        let is_part = |c: char| {
            c.is_alphanumeric() || c == '_' || (quotes == Quotes::Gemma && "-. $".contains(c))
        };
        let len = text.find(|c| !is_part(c)).unwrap_or(text.len());
        let assign = len + space(&text[len..]);
        match text[assign..].chars().next() {
            None if !is_last => None,
            Some(next) if next == self.notation.assign && len > 0 => {
                Some((text[..len].trim_end().into(), assign + 1))
            }
            _ => by_place(),
        }
    }

    fn value(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let State::Value(key, end, seen) = &mut self.state else {
            return Step::Wait;
        };
        let space = space(text);
        let rest = &text[space..];
        let scanned = end.scan(&rest[*seen..], is_last);
        *seen += scanned.len;
        if scanned.end == End::Open && !is_last {
            return Step::Wait;
        }
        let len = if scanned.end == End::Open {
            rest.len()
        } else {
            *seen
        };
        let value = rest[..len].trim_end();
        if scanned.end == End::Open {
            // The output ends inside the value.
            out.arguments(value);
            out.end();
            return Step::Over(space + len);
        }
        let json = literal::to_json(value, self.notation.quotes)
            .unwrap_or_else(|| write_as_json(value, &self.tools.types(&self.tool, key)));
        out.arguments(&json);
        self.state = State::Arguments;
        Step::Took(space + len)
    }

    fn between(&mut self, text: &str, is_last: bool) -> Step {
        let rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == ';');
        let skipped = text.len() - rest.len();
        if rest.is_empty() {
            return if is_last {
                Step::Over(skipped)
            } else {
                Step::Wait
            };
        }
        if self.in_list && rest.starts_with(']') {
            self.in_list = false;
            return Step::Took(skipped + 1);
        }
        let prefix = self.notation.prefix;
        let mut markers: Vec<&str> = self.close.into_iter().collect();
        markers.push(prefix);
        match starts_with_any(rest, &markers, is_last) {
            Err(()) => Step::Wait,
            Ok(Some(marker)) if Some(marker) == self.close => Step::Over(skipped + marker.len()),
            Ok(Some(_)) if !prefix.is_empty() => {
                self.state = State::Name;
                Step::Took(skipped + prefix.len())
            }
            Ok(_) if self.in_list => {
                self.state = State::Name;
                Step::Took(skipped)
            }
            // A bracket too many.
            Ok(_) if rest.starts_with(self.notation.closing()) => Step::Took(skipped + 1),
            Ok(_) => Step::Over(0),
        }
    }
}

impl Block for LiteralCalls {
    fn read(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        match self.state {
            State::Start => self.start(text, is_last),
            State::Name => self.name(text, is_last, out),
            State::Arguments => self.arguments(text, is_last, out),
            State::Value(..) => self.value(text, is_last, out),
            State::Between => self.between(text, is_last),
        }
    }
}
