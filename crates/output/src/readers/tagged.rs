//! Calls in tags, each parameter in its own, its value as bare text.
//!
//! Parameters become members of a JSON object one by one, by the types of the tool's schema; text
//! comes as it is written.

use crate::{
    Block, Sink, Step, Tools,
    argument::{ArgumentsWriter, escape, is_text, quote, write_as_json},
    readers::{tagged_format::Tags, tagged_value::Value},
    scan::{certain, first_of, space, starts_with_any},
    value_end::{End, Quotes, ValueEnd},
};

/// Names and attributes are never longer than this.
const HEAD_LIMIT: usize = 256;

#[derive(Debug)]
pub(super) struct TaggedCalls {
    tags: Tags,
    close: &'static str,
    must_be_offered: bool,
    tools: Tools,
    state: State,
    tool: String,
    arguments: ArgumentsWriter,
}

#[derive(Debug)]
enum State {
    /// The reader is before the first call.
    Open,
    Name,
    /// The reader is between parameters.
    Parameters,
    Key,
    Value(Value),
    /// The arguments are JSON after all.
    Json(ValueEnd),
    Between,
}

impl TaggedCalls {
    /// `open`: the marker that began the block, which may be that of a call itself. Then the tool
    /// must be offered, as anyone may write such a tag.
    pub(super) fn new(tags: Tags, close: &'static str, open: &str, tools: &Tools) -> Self {
        let is_call = tags.call == Some(open);
        Self {
            tags,
            close,
            must_be_offered: is_call,
            tools: tools.clone(),
            state: if is_call || tags.call.is_none() {
                State::Name
            } else {
                State::Open
            },
            tool: String::new(),
            arguments: ArgumentsWriter::default(),
        }
    }

    /// Expects the tag of a call, or behind one also the end of the block.
    fn call(&mut self, text: &str, is_last: bool) -> Step {
        let space = space(text);
        let is_first = matches!(self.state, State::Open);
        let mut markers: Vec<&str> = self.tags.call.into_iter().collect();
        if !is_first {
            markers.extend([self.close, self.tags.call_close]);
        }
        match starts_with_any(&text[space..], &markers, is_last) {
            Err(()) => Step::Wait,
            Ok(Some(marker)) if Some(marker) == self.tags.call => {
                self.state = State::Name;
                Step::Took(space + marker.len())
            }
            Ok(Some(marker)) if marker == self.close => Step::Over(space + marker.len()),
            Ok(Some(marker)) => Step::Took(space + marker.len()),
            Ok(None) if is_first => Step::Text,
            Ok(None) => Step::Over(0),
        }
    }

    fn name(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let found = if self.tags.call.is_some() {
            text.find('>').map(|at| (first_word(&text[..at]), at + 1))
        } else {
            match self.leading_name(text, is_last) {
                Ok(found) => found,
                Err(step) => return step,
            }
        };
        match found {
            None if text.len() > HEAD_LIMIT || is_last => Step::Text,
            None => Step::Wait,
            Some((name, len)) => {
                let is_name = len <= HEAD_LIMIT
                    && !name.is_empty()
                    && !name.contains(|c: char| c.is_whitespace() || "<>{}[]\"".contains(c));
                if !is_name || self.must_be_offered && !self.tools.offers(name) {
                    return Step::Text;
                }
                out.start(name);
                self.tool = name.into();
                self.state = State::Parameters;
                Step::Took(len)
            }
        }
    }

    /// A name without a tag, before a key or the end, and its length with the space around it.
    fn leading_name<'a>(
        &self,
        text: &'a str,
        is_last: bool,
    ) -> Result<Option<(&'a str, usize)>, Step> {
        let start = space(text);
        let word = &text[start..];
        let Some(len) = word.find(|c: char| c.is_whitespace() || "<{".contains(c)) else {
            return Ok(None);
        };
        let after = start + len + space(&word[len..]);
        match starts_with_any(
            &text[after..],
            &[self.tags.key, self.tags.call_close, "{"],
            is_last,
        ) {
            Err(()) => Err(Step::Wait),
            Ok(None) => Err(Step::Text),
            Ok(Some(_)) => Ok(Some((&word[..len], after))),
        }
    }

    fn parameters(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let space = space(text);
        let rest = &text[space..];
        if rest.is_empty() {
            if is_last {
                self.arguments.close(out);
                return Step::Over(space);
            }
            return Step::Wait;
        }
        if rest.starts_with('{') && self.arguments.count() == 0 {
            let stops = vec![self.tags.call_close, self.close];
            self.state = State::Json(ValueEnd::new(Quotes::Json, stops));
            return Step::Took(space);
        }
        let tags = &self.tags;
        let markers = [tags.key, tags.call_close, self.close];
        match starts_with_any(rest, &markers, is_last) {
            Err(()) => Step::Wait,
            Ok(Some(marker)) if marker == tags.key => {
                self.state = State::Key;
                Step::Took(space + marker.len())
            }
            Ok(Some(marker)) => {
                self.arguments.close(out);
                if marker == self.close {
                    return Step::Over(space + marker.len());
                }
                self.state = State::Between;
                Step::Took(space + marker.len())
            }
            // What is no parameter is the model's mistake, for the caller to see.
            Ok(None) if is_last && markers.iter().any(|marker| marker.starts_with(rest)) => {
                self.arguments.close(out);
                Step::Over(text.len())
            }
            Ok(None) => {
                let first = rest.chars().next().map_or(0, char::len_utf8);
                let after = &rest[first..];
                let len = first_of(after, &markers)
                    .map_or_else(|| certain(after, &markers), |(at, _)| at);
                // White space before a tag is the tag's.
                let len = space + rest[..first + len].trim_end().len();
                self.arguments.mistake(&text[..len], out);
                Step::Took(len)
            }
        }
    }

    fn key(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let tags = self.tags;
        let Some(at) = text.find(tags.key_close) else {
            if text.len() <= HEAD_LIMIT && !is_last {
                return Step::Wait;
            }
            return self.mistaken_key(text, out);
        };
        let head = &text[..at];
        let after = at + tags.key_close.len();
        let space = if tags.value.is_empty() {
            0
        } else {
            space(&text[after..])
        };
        let rest = &text[after + space..];
        if !tags.value.is_empty() {
            match starts_with_any(rest, &[tags.value], is_last) {
                Err(()) => return Step::Wait,
                Ok(None) => return self.mistaken_key(&text[..after], out),
                Ok(Some(_)) => {}
            }
        }
        let is_attribute = tags.key_close == ">";
        let key = if is_attribute {
            first_word(head)
        } else {
            head.trim()
        };
        // One family of models says in the tag whether the value is text.
        let types = self.tools.types(&self.tool, key);
        let is_any = types.is_empty();
        let is_text = match attribute(head, "string").filter(|_| is_attribute) {
            Some("true") => true,
            Some(_) => false,
            None => is_text(&types),
        };
        self.arguments.key(key, out);
        if is_text {
            out.arguments("\"");
        }
        self.state = State::Value(Value::new(key, is_text, is_any, !tags.has_lines));
        Step::Took(after + space + tags.value.len())
    }

    fn mistaken_key(&mut self, text: &str, out: &mut Sink) -> Step {
        self.arguments.mistake(self.tags.key, out);
        self.arguments.mistake(text, out);
        self.state = State::Parameters;
        Step::Took(text.len())
    }

    fn value(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let ends = self.tags.value_ends();
        let State::Value(value) = &mut self.state else {
            return Step::Wait;
        };
        if !value.has_begun {
            let Some(first) = text.chars().next() else {
                return if is_last {
                    self.end_value("", 0, out)
                } else {
                    Step::Wait
                };
            };
            value.has_begun = true;
            if first == '\n' {
                return Step::Took(1);
            }
        }
        if !value.skip_json(text, &ends, is_last) {
            return Step::Wait;
        }
        let longest = ends.iter().map(|end| end.len()).max().unwrap_or(0);
        let mut from = value.seen.saturating_sub(longest).max(value.floor);
        while !text.is_char_boundary(from) {
            from -= 1;
        }
        if let Some((at, marker)) = first_of(&text[from..], &ends) {
            let body = &text[..from + at];
            let closes = if marker == self.tags.value_close {
                marker.len()
            } else {
                0
            };
            return self.end_value(body, body.len() + closes, out);
        }
        if is_last {
            return self.cut_value(text, out);
        }
        let mut sure = certain(text, &ends);
        if !value.is_text {
            value.seen = sure;
            return Step::Wait;
        }
        // The last line break may be the tag's.
        if self.tags.has_lines && text[..sure].ends_with('\n') {
            sure -= 1;
        }
        if sure == 0 {
            return Step::Wait;
        }
        out.arguments(&escape(&text[..sure]));
        Step::Took(sure)
    }

    fn end_value(&mut self, body: &str, len: usize, out: &mut Sink) -> Step {
        let State::Value(value) = &self.state else {
            return Step::Wait;
        };
        let body = if self.tags.has_lines {
            body.strip_suffix('\n').unwrap_or(body)
        } else {
            body
        };
        if value.is_text {
            out.arguments(&escape(body));
            out.arguments("\"");
        } else {
            out.arguments(&write_as_json(
                body,
                &self.tools.types(&self.tool, &value.key),
            ));
        }
        self.state = State::Parameters;
        Step::Took(len)
    }

    /// The output ends inside a value.
    fn cut_value(&mut self, text: &str, out: &mut Sink) -> Step {
        let State::Value(value) = &self.state else {
            return Step::Wait;
        };
        if value.is_text {
            out.arguments(&escape(text));
        } else {
            let quoted = quote(text);
            out.arguments(&quoted[..quoted.len() - 1]);
        }
        out.end();
        Step::Over(text.len())
    }

    fn json(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        let State::Json(end) = &mut self.state else {
            return Step::Wait;
        };
        let scanned = end.scan(text, is_last);
        out.arguments(&text[..scanned.len]);
        if scanned.end == End::Open {
            return if scanned.len == 0 {
                Step::Wait
            } else {
                Step::Took(scanned.len)
            };
        }
        out.end();
        self.state = State::Between;
        Step::Took(scanned.len)
    }
}

impl Block for TaggedCalls {
    fn read(&mut self, text: &str, is_last: bool, out: &mut Sink) -> Step {
        match self.state {
            State::Open | State::Between => self.call(text, is_last),
            State::Name => self.name(text, is_last, out),
            State::Parameters => self.parameters(text, is_last, out),
            State::Key => self.key(text, is_last, out),
            State::Value(_) => self.value(text, is_last, out),
            State::Json(_) => self.json(text, is_last, out),
        }
    }
}

/// The first attribute or word of a tag, without quotes.
fn first_word(head: &str) -> &str {
    let head = head.trim();
    match head.chars().next() {
        Some(quote @ ('"' | '\'')) => head[1..].split(quote).next().unwrap_or_default(),
        _ => head.split(char::is_whitespace).next().unwrap_or_default(),
    }
}

/// The value of an attribute.
fn attribute<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = head.split_once(&format!("{name}=\""))?;
    after.split_once('"').map(|(value, _)| value)
}
