//! The state machine all formats share: chunking, markers cut in two, missing closes.
//!
//! - Joined pieces do not depend on where the text was cut.
//! - Text is held back only while it could still become a marker or a call.
//! - Nothing of an output that the model has ended is lost: a block that turns out to be none comes
//!   back as text, markers included. Once a call has been announced, all that follows up to its end
//!   is its arguments.
//! - Nothing is made up, and no marker leaks, where an output is cut: its pieces are the first ones
//!   of what it would have become. What is held back then is left out, and a call whose arguments
//!   are not whole has no end. Held text that can be nothing but text is given: where no tools are
//!   offered and a reasoning block cannot begin either.
//! - White space around reasoning and after a tool call is not output.

use super::{
    Piece, Span, Step, Tools,
    formats::Format,
    lead::{Lead, Verdict},
    open_block::OpenBlock,
    spans::Spans,
};
use crate::{CallPart, formats::Kind, needles::Scanner};

/// Takes generated text apart for one sequence. Without formats everything is text.
#[derive(Debug)]
pub struct OutputParser {
    formats: Vec<&'static dyn Format>,
    tools: Tools,
    state: State,
    /// `None` once the text since the output or the last block began is known to be text.
    lead: Option<Lead>,
    /// The visible text is an answer whose form a grammar has seen to: once it has begun, markers in
    /// it are its own.
    answers_in_form: bool,
    /// True once such an answer has begun.
    is_answering: bool,
    /// Markers that end it, if nothing but white space follows.
    answer_end: String,
    /// The closing marker that the last block ended without; text until it comes.
    unclosed: Option<&'static str>,
    spans: Spans,
}

#[derive(Debug)]
enum State {
    /// Looks for markers, which are those of [`OutputParser::markers`].
    Text(Scanner),
    Block(OpenBlock),
}

/// What a marker in text means.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    Opens(&'static dyn Format),
    /// Nothing; it is left out.
    Nothing,
}

/// How an output came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The model has ended it.
    Whole,
    /// A limit or a stop sequence has ended it, wherever the model was.
    Cut,
}

impl OutputParser {
    /// `opened` is the end of the prompt where that belongs to the output: the opening marker of a
    /// reasoning block or the beginning of a call. It is not given back as text.
    pub fn new(formats: &[&'static dyn Format], tools: Tools, opened: &str) -> Self {
        let mut parser = Self {
            formats: formats.to_vec(),
            tools,
            state: State::Text(Scanner::new([])),
            lead: None,
            answers_in_form: false,
            is_answering: false,
            answer_end: String::new(),
            unclosed: None,
            spans: Spans::behind(opened),
        };
        parser.state = parser.text_state();
        if !formats.is_empty() {
            parser.lead = Some(Lead::new(true, parser.bare_starts()));
        }
        parser.feed(opened);
        parser
    }

    /// Reads an output whose answer is held to a grammar.
    #[must_use]
    pub fn in_form(mut self) -> Self {
        self.answers_in_form = true;
        self
    }

    /// Takes the next text and gives what is certain now.
    pub fn push(&mut self, text: &str) -> Vec<Span> {
        self.feed(text);
        self.spans.take()
    }

    /// A stop sequence, which is no part of the text, has matched: where it is the marker that ends
    /// an open call, the call has ended.
    pub fn stop(&mut self, sequence: &str) -> Vec<Span> {
        if let State::Block(block) = &mut self.state
            && block.out.in_call()
            && block
                .closing_markers()
                .any(|marker| sequence.starts_with(marker))
        {
            block.rest.push_str(sequence);
            self.read_block(false);
        }
        let mut spans = self.spans.take();
        spans.retain(|span| matches!(span.piece, Piece::ToolCall(_)));
        spans
    }

    /// No more text comes. The model has ended the output: gives out what was held back, and a block
    /// without its closing marker is taken for what it holds. The output has been cut: gives out
    /// what can only be text.
    pub fn finish(&mut self, ending: Ending) -> Vec<Span> {
        match ending {
            Ending::Whole => self.give_all(),
            Ending::Cut => self.give_certain(),
        }
        self.spans.take()
    }

    /// Whether the model may call tools.
    fn may_call(&self) -> bool {
        let mut formats = self.formats.iter();
        !self.tools.is_empty() && formats.any(|format| format.kind().covers(Kind::ToolCalls))
    }

    fn give_certain(&mut self) {
        let may_call = self.may_call();
        match std::mem::replace(&mut self.state, State::Text(Scanner::new([]))) {
            State::Text(mut scanner) => {
                let held = scanner.flush();
                let may_begin = self.lead.as_ref().is_some_and(Lead::is_blank);
                let is_certain =
                    !(may_call || may_begin || self.is_answering || self.unclosed.is_some());
                match self.lead.take() {
                    Some(lead) if may_call => self.leave_out(lead.raw().len()),
                    Some(lead) => self.emit_lead(&lead),
                    None => {}
                }
                if is_certain {
                    let raw_len = held.len();
                    self.spans.push(Piece::Text(held), raw_len);
                } else {
                    self.leave_out(held.len());
                }
            }
            State::Block(block) => {
                let left = block.held.len() + block.rest.len();
                if block.out.in_call() {
                    let part = if block.has_whole_arguments() {
                        CallPart::End
                    } else {
                        CallPart::Arguments(String::new())
                    };
                    self.spans.push(Piece::ToolCall(part), left);
                } else if block.reader.in_text() && !may_call {
                    self.leave_out(block.held.len());
                    let raw_len = block.rest.len();
                    self.spans.push(Piece::Text(block.rest), raw_len);
                } else {
                    self.leave_out(left);
                }
            }
        }
        let end = std::mem::take(&mut self.answer_end);
        self.leave_out(end.len());
    }

    /// Text that no piece shows.
    fn leave_out(&mut self, raw_len: usize) {
        self.spans.push(Piece::Text(String::new()), raw_len);
    }

    fn give_all(&mut self) {
        loop {
            match &mut self.state {
                State::Text(scanner) => {
                    let held = scanner.flush();
                    match self.take_text(&held) {
                        Some(call) => self.begin_bare_call(&call),
                        None => break,
                    }
                }
                State::Block(_) => {
                    let rest = self.read_block(true);
                    self.feed(&rest);
                }
            }
        }
        if let Some(lead) = self.lead.take() {
            self.emit_lead(&lead);
        }
        let end = std::mem::take(&mut self.answer_end);
        self.leave_out(end.len());
    }

    /// Whether what comes next is reasoning, as far as markers have been seen.
    pub fn in_reasoning(&self) -> bool {
        match &self.state {
            State::Block(block) => block.reader.in_reasoning(),
            State::Text(_) => false,
        }
    }

    fn markers(&self) -> impl Iterator<Item = (Meaning, &'static str)> {
        self.formats
            .iter()
            .flat_map(|format| {
                let (open, silent): (&[&str], _) = if self.is_answering {
                    (&[], format.answer_ends())
                } else {
                    (format.open(), format.silent())
                };
                let (opens, silent) = (open.iter(), silent.iter());
                opens
                    .map(|marker| (Meaning::Opens(*format), *marker))
                    .chain(silent.map(|marker| (Meaning::Nothing, *marker)))
            })
            .chain(self.unclosed.map(|marker| (Meaning::Nothing, marker)))
    }

    fn bare_starts(&self) -> Vec<String> {
        self.formats
            .iter()
            .flat_map(|format| format.open_at_start(&self.tools))
            .collect()
    }

    fn text_state(&self) -> State {
        State::Text(Scanner::new(self.markers().map(|(_, marker)| marker)))
    }

    fn feed(&mut self, text: &str) {
        let mut text = text.to_owned();
        while !text.is_empty() {
            text = match &mut self.state {
                State::Text(_) => self.feed_text(&text),
                State::Block(block) => {
                    block.rest.push_str(&text);
                    self.read_block(false)
                }
            };
        }
    }

    /// Takes text up to the next marker and gives back what follows it.
    fn feed_text(&mut self, text: &str) -> String {
        let State::Text(scanner) = &mut self.state else {
            return text.into();
        };
        let mut free = String::new();
        let found = scanner.scan(text, &mut free);
        let marker = found
            .as_ref()
            .and_then(|found| self.markers().nth(found.needle));
        let rest = found.map_or("", |found| found.rest);
        let was_answering = self.is_answering;
        if let Some(mut call) = self.take_text(&free) {
            // What the scanner saw as a marker, or the start of one, is part of the call's body.
            if let Some((_, marker)) = marker {
                call.push_str(marker);
            } else if let State::Text(scanner) = &mut self.state {
                call.push_str(&scanner.flush());
            }
            self.begin_bare_call(&call);
        } else if self.is_answering != was_answering {
            // From here on other markers count, what may have been one included.
            let held = match &mut self.state {
                State::Text(scanner) => scanner.flush(),
                State::Block(_) => String::new(),
            };
            self.state = self.text_state();
            return [marker.map_or("", |(_, marker)| marker), rest, &held].concat();
        } else if let Some((meaning, marker)) = marker {
            if let Some(lead) = self.lead.take() {
                self.emit_lead(&lead.before_block());
            }
            self.unclosed = None;
            match meaning {
                Meaning::Nothing if self.is_answering => {
                    self.answer_end.push_str(marker);
                    self.state = self.text_state();
                }
                Meaning::Opens(format) => self.begin_block(format, marker),
                Meaning::Nothing => {
                    self.leave_out(marker.len());
                    self.lead = Some(Lead::new(false, self.bare_starts()));
                    self.state = self.text_state();
                }
            }
        }
        rest.into()
    }

    fn begin_block(&mut self, format: &'static dyn Format, open: &'static str) {
        self.state = State::Block(OpenBlock::new(format, open, &self.tools));
    }

    /// Starts a call whose opening marker the model left out, with its first text.
    fn begin_bare_call(&mut self, text: &str) {
        let format = self
            .formats
            .iter()
            .copied()
            .find(|format| !format.open_at_start(&self.tools).is_empty());
        if let Some(format) = format {
            self.begin_block(format, "");
            self.feed(text);
        }
    }

    /// Visible text. Returns all of it since the output began when that begins a call without an
    /// opening marker.
    fn take_text(&mut self, text: &str) -> Option<String> {
        if !self.answer_end.is_empty() {
            self.answer_end.push_str(text);
            if !text.trim().is_empty() {
                let text = std::mem::take(&mut self.answer_end);
                let raw_len = text.len();
                self.spans.push(Piece::Text(text), raw_len);
            }
            return None;
        }
        let Some(lead) = &mut self.lead else {
            self.spans.push(Piece::Text(text.into()), text.len());
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
        self.is_answering = self.answers_in_form;
        self.emit_lead(&lead);
        None
    }

    fn emit_lead(&mut self, lead: &Lead) {
        self.spans
            .push(Piece::Text(lead.visible().into()), lead.raw().len());
    }

    /// Lets the block take what it can and gives back what does not belong to it.
    fn read_block(&mut self, is_last: bool) -> String {
        loop {
            let State::Block(block) = &mut self.state else {
                return String::new();
            };
            let step = block.reader.read(&block.rest, is_last, &mut block.out);
            match step {
                Step::Took(len) => {
                    block.held.extend(block.rest.drain(..len));
                    let is_answer = self.answers_in_form && block.reader.in_answer();
                    self.emit_block();
                    if is_answer {
                        self.is_answering = true;
                        let rest = self.end_block(true);
                        self.lead = None;
                        return rest;
                    }
                }
                Step::Over(len) => {
                    block.held.extend(block.rest.drain(..len));
                    block.out.end();
                    let is_closed = len > 0;
                    self.emit_block();
                    return self.end_block(is_closed);
                }
                Step::Wait if !is_last => return String::new(),
                Step::Wait => return self.end_cut_block(),
                Step::Text => return self.give_back(),
            }
        }
    }

    /// The block is over; the rest does not belong to it.
    fn end_block(&mut self, is_closed: bool) -> String {
        let State::Block(block) = std::mem::replace(&mut self.state, State::Text(Scanner::new([])))
        else {
            return String::new();
        };
        self.spans
            .push(Piece::Text(String::new()), block.held.len());
        self.unclosed = block.format.close().filter(|_| !is_closed);
        self.state = self.text_state();
        // After reasoning the output begins anew.
        let starts = if block.has_called {
            Vec::new()
        } else {
            self.bare_starts()
        };
        self.lead = Some(Lead::new(false, starts));
        block.rest
    }

    /// The output ends inside the block: what is left belongs to what is open.
    fn end_cut_block(&mut self) -> String {
        let State::Block(block) = &mut self.state else {
            return String::new();
        };
        let rest = std::mem::take(&mut block.rest);
        if block.out.in_call() {
            block.out.arguments(&rest);
            block.out.end();
        } else if block.reader.in_reasoning() {
            block.out.reasoning(&rest);
        } else if !(block.is_certain && block.held.trim().is_empty() && rest.trim().is_empty()) {
            block.rest = rest;
            return self.give_back();
        }
        block.held.push_str(&rest);
        self.emit_block();
        self.end_block(true)
    }

    /// No block after all: what it held is text, but for its opening marker to be looked at again.
    fn give_back(&mut self) -> String {
        self.is_answering = self.answers_in_form;
        let next = self.text_state();
        let State::Block(block) = std::mem::replace(&mut self.state, next) else {
            return String::new();
        };
        self.lead = None;
        let mut open = block.held + &block.rest;
        let rest = open.split_off(if block.is_certain {
            0
        } else {
            block.open.len()
        });
        let raw_len = open.len();
        self.spans.push(Piece::Text(open), raw_len);
        rest
    }

    /// Emits what the block has given. The last piece stands for all the text since the one before.
    fn emit_block(&mut self) {
        let next = State::Text(Scanner::new([]));
        let State::Block(mut block) = std::mem::replace(&mut self.state, next) else {
            return;
        };
        let pieces = block.out.take();
        let last = pieces.len();
        for (index, piece) in pieces.into_iter().enumerate() {
            let raw_len = if index + 1 == last {
                std::mem::take(&mut block.held).len()
            } else {
                0
            };
            let piece = block.note(piece);
            self.spans.push(piece, raw_len);
        }
        self.state = State::Block(block);
    }
}
