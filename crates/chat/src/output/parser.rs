//! The state machine all formats share: chunking, markers cut in two, missing closes.
//!
//! - Joined pieces do not depend on where the text was cut.
//! - Text is held back only while it could still become a marker; a tool call is given out whole.
//! - Nothing is lost: a body that is no call comes back as text, markers included.
//! - White space around reasoning and after a tool call is not output.

use super::{
    Piece, Span,
    formats::{Close, Format, Kind, Parsed},
};
use crate::needles::Scanner;

/// Takes generated text apart for one sequence. Without formats everything is text.
#[derive(Debug)]
pub struct OutputParser {
    formats: Vec<&'static dyn Format>,
    state: State,
    lead: Lead,
    spans: Vec<Span>,
}

#[derive(Debug)]
enum State {
    /// Looks for the opening markers of all formats.
    Text(Scanner),
    Reasoning(ReasoningBlock),
    Call(CallBlock),
}

#[derive(Debug)]
struct ReasoningBlock {
    /// The closing marker first, if there is one, then the opening ones.
    markers: Vec<&'static str>,
    scanner: Scanner,
    has_close: bool,
    /// White space that is output only if more reasoning follows.
    spaces: String,
    started: bool,
}

#[derive(Debug)]
struct CallBlock {
    format: &'static dyn Format,
    markers: Vec<&'static str>,
    scanner: Scanner,
    has_close: bool,
    /// The marker that began the block, empty when the body has none.
    open: &'static str,
    body: String,
}

/// What is known of the text since the output or the last block began.
#[derive(Debug)]
enum Lead {
    /// It is text.
    Over,
    /// White space so far, or what could become a call without an opening marker.
    Open {
        text: String,
        /// `text` without white space.
        dense: String,
        /// White space alone is the model's text, not a separator after a block.
        keep_space: bool,
        /// A call without an opening marker may begin here.
        may_call: bool,
    },
}

impl Lead {
    fn open(keep_space: bool, may_call: bool) -> Self {
        Self::Open {
            text: String::new(),
            dense: String::new(),
            keep_space,
            may_call,
        }
    }
}

impl OutputParser {
    /// `starts_in_reasoning`: the prompt ends inside a reasoning block, of the first such format.
    pub fn new(formats: &[&'static dyn Format], starts_in_reasoning: bool) -> Self {
        let mut parser = Self {
            formats: formats.to_vec(),
            state: State::Text(Scanner::new([])),
            lead: if formats.is_empty() {
                Lead::Over
            } else {
                Lead::open(true, true)
            },
            spans: Vec::new(),
        };
        parser.state = match parser.reasoning_format() {
            Some(format) if starts_in_reasoning => State::Reasoning(ReasoningBlock::new(format)),
            _ => parser.text_state(),
        };
        parser
    }

    /// Takes the next text and gives what is certain now.
    pub fn push(&mut self, text: &str) -> Vec<Span> {
        self.feed(text);
        std::mem::take(&mut self.spans)
    }

    /// No more text comes: gives out what was held back. A block without its closing marker is
    /// taken for what it holds.
    pub fn finish(&mut self) -> Vec<Span> {
        if let State::Text(scanner) = &mut self.state {
            let held = scanner.flush();
            if let Some(call) = self.take_text(&held) {
                self.begin_bare_call(&call);
            }
        }
        match std::mem::replace(&mut self.state, State::Text(Scanner::new([]))) {
            State::Text(_) => {}
            State::Reasoning(mut block) => {
                let held = block.scanner.flush();
                let text = std::mem::take(&mut block.spaces) + &held;
                self.emit(Piece::Reasoning(text.clone()), text.len());
            }
            State::Call(mut block) => {
                let held = block.scanner.flush();
                block.body.push_str(&held);
                match block.format.parse_body(&block.body) {
                    Parsed::Calls { calls, rest_len } => {
                        self.emit_calls(&block, calls, rest_len, 0);
                    }
                    Parsed::InsideString | Parsed::Text => self.give_back(&block, ""),
                }
            }
        }
        self.end_lead();
        std::mem::take(&mut self.spans)
    }

    /// Whether what comes next is reasoning, as far as markers have been seen.
    pub fn in_reasoning(&self) -> bool {
        matches!(self.state, State::Reasoning(_))
    }

    /// The marker that closes a reasoning block.
    pub fn reasoning_close(&self) -> Option<&'static str> {
        match self.reasoning_format()?.close() {
            Close::Marker(marker) => Some(marker),
            Close::End => None,
        }
    }

    fn reasoning_format(&self) -> Option<&'static dyn Format> {
        self.formats
            .iter()
            .copied()
            .find(|format| format.kind() == Kind::Reasoning)
    }

    fn openings(&self) -> impl Iterator<Item = (&'static dyn Format, &'static str)> {
        self.formats
            .iter()
            .flat_map(|format| format.open().iter().map(|marker| (*format, *marker)))
    }

    fn text_state(&self) -> State {
        State::Text(Scanner::new(self.openings().map(|(_, marker)| marker)))
    }

    fn feed(&mut self, mut rest: &str) {
        while !rest.is_empty() {
            rest = match &mut self.state {
                State::Text(_) => self.feed_text(rest),
                State::Reasoning(_) => self.feed_reasoning(rest),
                State::Call(_) => self.feed_call(rest),
            };
        }
    }

    fn feed_text<'a>(&mut self, text: &'a str) -> &'a str {
        let State::Text(scanner) = &mut self.state else {
            return text;
        };
        let mut free = String::new();
        let found = scanner.scan(text, &mut free);
        let opening = found
            .as_ref()
            .and_then(|found| self.openings().nth(found.needle));
        let rest = found.map_or("", |found| found.rest);
        if let Some(mut call) = self.take_text(&free) {
            // What the scanner saw as a marker, or the start of one, is part of the call's body.
            if let Some((_, marker)) = opening {
                call.push_str(marker);
            } else if let State::Text(scanner) = &mut self.state {
                call.push_str(&scanner.flush());
            }
            self.begin_bare_call(&call);
        } else if let Some((format, marker)) = opening {
            self.end_lead_before_block();
            self.begin_block(format, marker);
        }
        rest
    }

    fn feed_reasoning<'a>(&mut self, text: &'a str) -> &'a str {
        let State::Reasoning(block) = &mut self.state else {
            return text;
        };
        let mut free = String::new();
        let found = block.scanner.scan(text, &mut free);
        let mut raw_len = free.len();
        let mut visible = free.as_str();
        if !block.started {
            visible = visible.trim_start();
        }
        let mut piece = String::new();
        if !visible.is_empty() {
            block.started = true;
            let body = visible.trim_end();
            if !body.is_empty() {
                piece = std::mem::take(&mut block.spaces);
                raw_len += piece.len();
                piece.push_str(body);
            }
            block.spaces.push_str(&visible[body.len()..]);
            raw_len -= visible.len() - body.len();
        }
        let Some(found) = found else {
            self.emit(Piece::Reasoning(piece), raw_len);
            return "";
        };
        let marker = block.markers[found.needle];
        if found.needle == 0 && block.has_close {
            raw_len += block.spaces.len() + marker.len();
            self.emit(Piece::Reasoning(piece), raw_len);
            self.state = self.text_state();
            self.lead = Lead::open(false, true);
        } else if block.started {
            // The model writes about the marker.
            let spaces = std::mem::take(&mut block.spaces);
            piece.push_str(&spaces);
            piece.push_str(marker);
            raw_len += spaces.len() + marker.len();
            self.emit(Piece::Reasoning(piece), raw_len);
        } else {
            // The prompt has opened the block and the model does it again.
            self.emit(Piece::Reasoning(piece), raw_len + marker.len());
        }
        found.rest
    }

    fn feed_call<'a>(&mut self, text: &'a str) -> &'a str {
        let State::Call(block) = &mut self.state else {
            return text;
        };
        let Some(found) = block.scanner.scan(text, &mut block.body) else {
            return "";
        };
        let marker = block.markers[found.needle];
        let closes = found.needle == 0 && block.has_close;
        let parsed = block.format.parse_body(&block.body);
        if parsed == Parsed::InsideString {
            block.body.push_str(marker);
            return found.rest;
        }
        let next = self.text_state();
        let State::Call(block) = std::mem::replace(&mut self.state, next) else {
            return found.rest;
        };
        match parsed {
            Parsed::Calls { calls, rest_len } => {
                let marker_len = if closes { marker.len() } else { 0 };
                self.emit_calls(&block, calls, rest_len, marker_len);
            }
            Parsed::InsideString | Parsed::Text => {
                self.give_back(&block, if closes { marker } else { "" });
            }
        }
        if !closes {
            self.begin_block(block.format, marker);
        }
        found.rest
    }

    fn begin_block(&mut self, format: &'static dyn Format, marker: &'static str) {
        self.state = match format.kind() {
            Kind::Reasoning => {
                self.emit(Piece::Reasoning(String::new()), marker.len());
                State::Reasoning(ReasoningBlock::new(format))
            }
            Kind::ToolCalls => State::Call(CallBlock::new(format, marker)),
        };
    }

    /// Starts a call whose opening marker the model left out, with its first text.
    fn begin_bare_call(&mut self, text: &str) {
        let format = self
            .formats
            .iter()
            .copied()
            .find(|format| !format.open_at_start().is_empty());
        if let Some(format) = format {
            self.state = State::Call(CallBlock::new(format, ""));
            self.feed(text);
        }
    }

    /// Visible text. Returns all of it since the output began when that begins a call without an
    /// opening marker.
    fn take_text(&mut self, new: &str) -> Option<String> {
        let Lead::Open {
            text,
            dense,
            may_call,
            ..
        } = &mut self.lead
        else {
            self.emit(Piece::Text(new.into()), new.len());
            return None;
        };
        text.push_str(new);
        dense.extend(new.chars().filter(|c| !c.is_whitespace()));
        if dense.is_empty() {
            return None;
        }
        if *may_call {
            let mut starts = self
                .formats
                .iter()
                .flat_map(|format| format.open_at_start());
            if starts.clone().any(|start| dense.starts_with(start)) {
                let text = std::mem::take(text);
                self.lead = Lead::Over;
                return Some(text);
            }
            if starts.any(|start| start.starts_with(dense.as_str())) {
                return None;
            }
        }
        self.end_lead();
        None
    }

    /// Gives out the text the output or a block's sequel began with.
    fn end_lead(&mut self) {
        if let Lead::Open {
            text, keep_space, ..
        } = std::mem::replace(&mut self.lead, Lead::Over)
        {
            let visible = if keep_space {
                text.as_str()
            } else {
                text.trim_start()
            };
            self.emit(Piece::Text(visible.into()), text.len());
        }
    }

    /// The same before a block: white space alone is not output.
    fn end_lead_before_block(&mut self) {
        if let Lead::Open {
            keep_space, dense, ..
        } = &mut self.lead
            && dense.is_empty()
        {
            *keep_space = false;
        }
        self.end_lead();
    }

    fn emit_calls(
        &mut self,
        block: &CallBlock,
        calls: Vec<super::formats::Call>,
        rest_len: usize,
        marker_len: usize,
    ) {
        // The first call stands for all the text of the block.
        let mut raw_len = block.open.len() + block.body.len() + marker_len - rest_len;
        for call in calls {
            self.spans.push(Span {
                piece: Piece::ToolCall {
                    name: call.name,
                    arguments: call.arguments,
                },
                raw_len: std::mem::take(&mut raw_len),
            });
        }
        let body = block.body.trim_end();
        let rest = &body[body.len() - rest_len..];
        self.emit(Piece::Text(rest.into()), rest_len);
        self.lead = Lead::open(false, false);
    }

    fn give_back(&mut self, block: &CallBlock, marker: &str) {
        let text = [block.open, block.body.as_str(), marker].concat();
        let raw_len = text.len();
        self.emit(Piece::Text(text), raw_len);
        self.lead = Lead::Over;
    }

    /// Appends a piece, joined to the one before where that is of the same kind.
    fn emit(&mut self, piece: Piece, raw_len: usize) {
        if raw_len == 0 {
            return;
        }
        match (self.spans.last_mut(), piece) {
            (
                Some(Span {
                    piece: Piece::Text(text),
                    raw_len: len,
                }),
                Piece::Text(more),
            )
            | (
                Some(Span {
                    piece: Piece::Reasoning(text),
                    raw_len: len,
                }),
                Piece::Reasoning(more),
            ) => {
                text.push_str(&more);
                *len += raw_len;
            }
            (_, piece) => self.spans.push(Span { piece, raw_len }),
        }
    }
}

/// The markers that end or interrupt a block, the closing one first, and whether there is one.
fn block_markers(format: &dyn Format) -> (Vec<&'static str>, bool) {
    let close = match format.close() {
        Close::Marker(marker) => Some(marker),
        Close::End => None,
    };
    let markers = close.into_iter().chain(format.open().iter().copied());
    (markers.collect(), close.is_some())
}

impl ReasoningBlock {
    fn new(format: &dyn Format) -> Self {
        let (markers, has_close) = block_markers(format);
        Self {
            scanner: Scanner::new(markers.iter().copied()),
            markers,
            has_close,
            spaces: String::new(),
            started: false,
        }
    }
}

impl CallBlock {
    fn new(format: &'static dyn Format, open: &'static str) -> Self {
        let (markers, has_close) = block_markers(format);
        Self {
            format,
            scanner: Scanner::new(markers.iter().copied()),
            markers,
            has_close,
            open,
            body: String::new(),
        }
    }
}
