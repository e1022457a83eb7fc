//! The state machine all formats share: chunking, markers cut in two, missing closes.
//!
//! - Joined pieces do not depend on where the text was cut.
//! - Text is held back only while it could still become a marker; a tool call is given out whole.
//! - Nothing is lost: a body that is no call comes back as text, markers included.
//! - White space around reasoning and after a tool call is not output.

use std::sync::Arc;

use macmlx_inference::ToolDefinition;

use super::{
    CallPart, Piece, Span,
    blocks::{CallBlock, ReasoningBlock},
    formats::{Call, Close, Format, Kind, Parsed},
    lead::{Lead, Verdict},
};
use crate::needles::Scanner;

/// Takes generated text apart for one sequence. Without formats everything is text.
#[derive(Debug)]
pub struct OutputParser {
    formats: Vec<&'static dyn Format>,
    /// Offered to the model.
    tools: Arc<[ToolDefinition]>,
    state: State,
    /// `None` once the text since the output or the last block began is known to be text.
    lead: Option<Lead>,
    spans: Vec<Span>,
}

#[derive(Debug)]
enum State {
    /// Looks for the opening markers of all formats.
    Text(Scanner),
    Reasoning(ReasoningBlock),
    Call(CallBlock),
}

impl OutputParser {
    /// `starts_in_reasoning`: the prompt ends inside a reasoning block, of the first such format.
    /// A call without a marker counts only when it is of one of the `tools`.
    pub fn new(
        formats: &[&'static dyn Format],
        starts_in_reasoning: bool,
        tools: Arc<[ToolDefinition]>,
    ) -> Self {
        let mut parser = Self {
            formats: formats.to_vec(),
            tools,
            state: State::Text(Scanner::new([])),
            lead: None,
            spans: Vec::new(),
        };
        parser.state = match parser.reasoning_format() {
            Some(format) if starts_in_reasoning => State::Reasoning(ReasoningBlock::new(format)),
            _ => parser.text_state(),
        };
        if !formats.is_empty() {
            parser.lead = Some(Lead::new(true, parser.bare_starts()));
        }
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
            State::Reasoning(block) => {
                let text = block.finish();
                let raw_len = text.len();
                self.emit(Piece::Reasoning(text), raw_len);
            }
            State::Call(mut block) => {
                block.finish();
                let parsed = block.format.parse_body(&block.body);
                self.end_call(&block, parsed, "");
            }
        }
        if let Some(lead) = self.lead.take() {
            self.emit_lead(&lead);
        }
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

    fn bare_starts(&self) -> Vec<&'static str> {
        self.formats
            .iter()
            .flat_map(|format| format.open_at_start())
            .copied()
            .collect()
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
        if let Some(mut call) = self.take_text(&free) {
            // What the scanner saw as a marker, or the start of one, is part of the call's body.
            if let Some((_, marker)) = opening {
                call.push_str(marker);
            } else if let State::Text(scanner) = &mut self.state {
                call.push_str(&scanner.flush());
            }
            self.begin_bare_call(&call);
        } else if let Some((format, marker)) = opening {
            if let Some(lead) = self.lead.take() {
                self.emit_lead(&lead.before_block());
            }
            self.begin_block(format, marker);
        }
        found.map_or("", |found| found.rest)
    }

    fn feed_reasoning<'a>(&mut self, text: &'a str) -> &'a str {
        let State::Reasoning(block) = &mut self.state else {
            return text;
        };
        let reasoned = block.feed(text);
        self.emit(Piece::Reasoning(reasoned.text), reasoned.raw_len);
        if reasoned.is_closed {
            self.state = self.text_state();
            self.lead = Some(Lead::new(false, self.bare_starts()));
        }
        reasoned.rest
    }

    fn feed_call<'a>(&mut self, text: &'a str) -> &'a str {
        let State::Call(block) = &mut self.state else {
            return text;
        };
        let Some((marker, rest)) = block.feed(text) else {
            return "";
        };
        let parsed = block.format.parse_body(&block.body);
        if parsed == Parsed::InsideString {
            block.body.push_str(marker.text);
            return rest;
        }
        let next = self.text_state();
        if let State::Call(block) = std::mem::replace(&mut self.state, next) {
            if marker.closes {
                self.end_call(&block, parsed, marker.text);
            } else {
                self.end_call(&block, parsed, "");
                self.begin_block(block.format, marker.text);
            }
        }
        rest
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
    fn take_text(&mut self, text: &str) -> Option<String> {
        let Some(lead) = &mut self.lead else {
            self.emit(Piece::Text(text.into()), text.len());
            return None;
        };
        let verdict = lead.push(text);
        if verdict == Verdict::Open {
            return None;
        }
        let lead = self.lead.take()?;
        if verdict == Verdict::Call {
            return Some(lead.raw().into());
        }
        self.emit_lead(&lead);
        None
    }

    fn emit_lead(&mut self, lead: &Lead) {
        self.emit(Piece::Text(lead.visible().into()), lead.raw().len());
    }

    /// Gives out the calls of a block, or its text when there are none. `close` is the marker that
    /// ended it.
    fn end_call(&mut self, block: &CallBlock, parsed: Parsed, close: &str) {
        match parsed {
            Parsed::Calls { calls, rest_len }
                if !block.open.is_empty() || calls.iter().all(|call| self.offers(&call.name)) =>
            {
                let raw_len = block.open.len() + block.body.len() + close.len() - rest_len;
                self.emit_calls(calls, raw_len);
                let body = block.body.trim_end();
                let rest = &body[body.len() - rest_len..];
                self.emit(Piece::Text(rest.into()), rest_len);
                self.lead = Some(Lead::new(false, Vec::new()));
            }
            Parsed::Calls { .. } | Parsed::InsideString | Parsed::Text => {
                let text = [block.open, block.body.as_str(), close].concat();
                let raw_len = text.len();
                self.emit(Piece::Text(text), raw_len);
                self.lead = None;
            }
        }
    }

    fn offers(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// The first call stands for all the text of the block.
    fn emit_calls(&mut self, calls: Vec<Call>, mut raw_len: usize) {
        for Call { name, arguments } in calls {
            let start = CallPart::Start { name };
            for part in [start, CallPart::Arguments(arguments), CallPart::End] {
                self.spans.push(Span {
                    piece: Piece::ToolCall(part),
                    raw_len: std::mem::take(&mut raw_len),
                });
            }
        }
    }

    /// Appends a piece, joined to the one before where that is of the same kind.
    fn emit(&mut self, piece: Piece, raw_len: usize) {
        if raw_len == 0 {
            return;
        }
        if let Some(last) = self.spans.last_mut() {
            match (&mut last.piece, &piece) {
                (Piece::Text(text), Piece::Text(more))
                | (Piece::Reasoning(text), Piece::Reasoning(more)) => {
                    text.push_str(more);
                    last.raw_len += raw_len;
                    return;
                }
                _ => {}
            }
        }
        self.spans.push(Span { piece, raw_len });
    }
}
