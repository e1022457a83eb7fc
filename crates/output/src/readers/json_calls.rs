//! Calls as JSON objects with a name and arguments.
//!
//! Read are objects with `name` or `tool_name` and `arguments` or `parameters`, these two also
//! inside `function`; alone, in a list, or one after the other with `;`, `,` or white space
//! between, in a Markdown fence or not. Arguments are given as they come when the name stands
//! before them.

use serde_json::value::RawValue;

use crate::{
    Block, Sink, Step, Tools,
    scan::{Starts, space, starts, starts_with_any},
    value_end::{End, Quotes, ValueEnd},
};

const FENCE: &str = "```";
const JSON_FENCE: &str = "```json";

/// Reads objects until a closing marker, an opening one, or text that is neither.
#[derive(Debug)]
pub(crate) struct JsonCalls {
    close: Option<&'static str>,
    open: &'static [&'static str],
    /// The tools whose calls count, where no marker makes a call certain.
    offered: Option<Tools>,
    state: State,
    is_fenced: bool,
    in_list: bool,
    object: Object,
}

#[derive(Debug, Default)]
struct Object {
    /// Braces open, apart from those of arguments.
    depth: usize,
    name: Option<String>,
    /// That came before the name.
    arguments: Option<String>,
    is_announced: bool,
    /// Keys that calls do not have.
    has_others: bool,
}

#[derive(Debug)]
enum State {
    Start,
    Key,
    /// The reader is behind a key and its colon. The last field says how far the value has been
    /// read.
    Value(String, ValueEnd, usize),
    Arguments(ValueEnd),
    Between,
}

impl JsonCalls {
    pub(crate) fn new(
        close: Option<&'static str>,
        open: &'static [&'static str],
        offered: Option<&Tools>,
    ) -> Self {
        Self {
            close,
            open,
            offered: offered.cloned(),
            state: State::Start,
            is_fenced: false,
            in_list: false,
            object: Object::default(),
        }
    }

    fn value_end(&self) -> ValueEnd {
        let stops = self.close.into_iter().chain(self.open.iter().copied());
        ValueEnd::new(Quotes::Json, stops.collect())
    }

    fn start(&mut self, text: &str, is_last: bool) -> Step {
        let space = space(text);
        let rest = &text[space..];
        if !self.is_fenced && !self.in_list {
            match starts(rest, JSON_FENCE, is_last) {
                Starts::Yes => {
                    self.is_fenced = true;
                    return Step::Took(space + JSON_FENCE.len());
                }
                Starts::Maybe => return Step::Wait,
                Starts::No => {}
            }
        }
        match rest.chars().next() {
            None => Step::Wait,
            Some('[') if !self.in_list => {
                self.in_list = true;
                Step::Took(space + 1)
            }
            Some('{') => self.begin_object(space + 1),
            Some(_) => Step::Text,
        }
    }

    fn begin_object(&mut self, len: usize) -> Step {
        self.object = Object {
            depth: 1,
            ..Object::default()
        };
        self.state = State::Key;
        Step::Took(len)
    }

    fn key(&mut self, text: &str, out: &mut Sink) -> Step {
        let rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let skipped = text.len() - rest.len();
        match rest.chars().next() {
            None => Step::Wait,
            Some('}') => {
                self.object.depth -= 1;
                if self.object.depth == 0 && !self.end_object(out) {
                    return Step::Text;
                }
                Step::Took(skipped + 1)
            }
            Some('"') => {
                let Some(len) = string_len(rest) else {
                    return Step::Wait;
                };
                let after = rest[len..].trim_start();
                let colon = rest.len() - after.len();
                match (read_text(&rest[..len]), after.chars().next()) {
                    (_, None) => Step::Wait,
                    (Some(key), Some(':')) => {
                        self.state = State::Value(key, self.value_end(), 0);
                        Step::Took(skipped + colon + 1)
                    }
                    _ => self.mistake(out),
                }
            }
            Some(_) => self.mistake(out),
        }
    }

    /// No JSON: the call ends, if it has begun.
    fn mistake(&mut self, out: &mut Sink) -> Step {
        if !self.object.is_announced {
            return Step::Text;
        }
        out.end();
        self.state = State::Between;
        Step::Took(0)
    }

    fn value(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let State::Value(key, end, seen) = &mut self.state else {
            return Step::Wait;
        };
        let space = space(text);
        let rest = &text[space..];
        let is_arguments = matches!(key.as_str(), "arguments" | "parameters");
        match rest.chars().next() {
            None if is_last => return self.mistake(out),
            None => return Step::Wait,
            Some('{') if key == "function" => {
                self.object.depth += 1;
                self.state = State::Key;
                return Step::Took(space + 1);
            }
            Some('{') if is_arguments && !self.object.is_announced => {
                if let Some(name) = &self.object.name {
                    out.start(name);
                    self.object.is_announced = true;
                    self.state = State::Arguments(self.value_end());
                    return Step::Took(space);
                }
            }
            Some('"') if matches!(key.as_str(), "name" | "tool_name") => {
                // A name that can become none of those offered makes no call.
                let begun = rest[1..].split(['"', '\\']).next().unwrap_or_default();
                if self
                    .offered
                    .as_ref()
                    .is_some_and(|tools| !tools.offers_one_that_begins(begun))
                {
                    return self.mistake(out);
                }
            }
            Some(_) => {}
        }
        let scanned = end.scan(&rest[*seen..], is_last);
        *seen += scanned.len;
        if scanned.end != End::Whole {
            return if scanned.end == End::Open && !is_last {
                Step::Wait
            } else {
                self.mistake(out)
            };
        }
        let (key, len) = (std::mem::take(key), *seen);
        if self.take_member(&key, rest[..len].trim_end(), out) {
            self.state = State::Key;
            Step::Took(space + len)
        } else {
            self.mistake(out)
        }
    }

    /// Takes a whole member; whether it is one that a call can have.
    fn take_member(&mut self, key: &str, value: &str, out: &mut Sink) -> bool {
        let object = &mut self.object;
        match key {
            "name" | "tool_name" | "function" if object.name.is_none() => {
                let Some(name) = read_text(value).filter(|name| !name.is_empty()) else {
                    return false;
                };
                if self
                    .offered
                    .as_ref()
                    .is_some_and(|tools| !tools.offers(&name))
                {
                    return false;
                }
                object.name = Some(name);
            }
            "arguments" | "parameters" if !object.is_announced => {
                let Some(arguments) = object_text(value) else {
                    return false;
                };
                object.arguments = Some(arguments);
            }
            "type" | "id" | "tool_call_id" => {}
            _ => object.has_others = true,
        }
        if let (Some(name), Some(arguments), false) =
            (&object.name, &object.arguments, object.is_announced)
        {
            out.start(name);
            out.arguments(arguments);
            object.is_announced = true;
        }
        true
    }

    /// Whether the object was a call.
    fn end_object(&mut self, out: &mut Sink) -> bool {
        let object = &self.object;
        if let (Some(name), false, false) = (&object.name, object.is_announced, object.has_others) {
            out.start(name);
            out.arguments("{}");
        } else if !object.is_announced {
            return false;
        }
        out.end();
        self.state = State::Between;
        true
    }

    fn arguments(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let State::Arguments(end) = &mut self.state else {
            return Step::Wait;
        };
        let scanned = end.scan(text, is_last);
        out.arguments(&text[..scanned.len]);
        match scanned.end {
            End::Open if scanned.len == 0 => return Step::Wait,
            End::Open => {}
            End::Whole => self.state = State::Key,
            End::Broken => {
                out.end();
                self.state = State::Between;
            }
        }
        Step::Took(scanned.len)
    }

    fn between(&mut self, text: &str, is_last: bool) -> Step {
        let rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == ',');
        let skipped = text.len() - rest.len();
        if rest.is_empty() {
            return if is_last {
                Step::Over(skipped)
            } else {
                Step::Wait
            };
        }
        if rest.starts_with(']') && self.in_list {
            self.in_list = false;
            return Step::Took(skipped + 1);
        }
        let mut markers: Vec<&str> = self.open.to_vec();
        markers.extend(self.close);
        if self.is_fenced {
            markers.push(FENCE);
        }
        match starts_with_any(rest, &markers, is_last) {
            Err(()) => Step::Wait,
            Ok(Some(marker)) if Some(marker) == self.close => Step::Over(skipped + marker.len()),
            Ok(Some(FENCE)) => {
                self.is_fenced = false;
                Step::Took(skipped + FENCE.len())
            }
            Ok(None) if rest.starts_with('{') => self.begin_object(skipped + 1),
            // Braces left over from a miscounted object.
            Ok(None) if rest.starts_with('}') => Step::Took(skipped + 1),
            Ok(_) => Step::Over(0),
        }
    }
}

impl Block for JsonCalls {
    fn read(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        match self.state {
            State::Start => self.start(text, is_last),
            State::Key => match self.key(text, out) {
                Step::Wait if is_last => self.mistake(out),
                step => step,
            },
            State::Value(..) => self.value(text, is_last, out),
            State::Arguments(_) => self.arguments(text, is_last, out),
            State::Between => self.between(text, is_last),
        }
    }
}

/// Bytes of the JSON string that text begins with, if it is all there.
fn string_len(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// What a JSON string says.
fn read_text(json: &str) -> Option<String> {
    macmlx_json::read_document(json.as_bytes()).ok()
}

/// The text of the arguments object, which some models write as a string or leave out.
fn object_text(value: &str) -> Option<String> {
    if value == "null" {
        return Some("{}".into());
    }
    let text = if value.starts_with('"') {
        read_text(value)?
    } else {
        value.to_owned()
    };
    let is_object =
        text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(&text).is_ok();
    is_object.then_some(text)
}
