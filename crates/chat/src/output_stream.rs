//! One sequence's way from ids to pieces: detokenizer, stop sequences, output parser.
//!
//! Stop sequences are matched on visible text, as hosted APIs do it: not on reasoning, which may
//! quote them, and not on the body of a tool call. A sequence that contains a marker of the output
//! format never appears in visible text; it is matched on the raw text.

use std::collections::VecDeque;

use macmlx_inference::FinishReason;

use macmlx_output::{CallPart, Ending, OutputParser, Piece, Span};

use crate::{Detokenizer, stop::StopMatcher};

/// A part of the output and the tokens whose text ends in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPiece {
    pub piece: Piece,
    /// How many of the pushed tokens, oldest first, not counted in an earlier piece.
    pub tokens: usize,
}

/// The end of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// What had been held back.
    pub pieces: Vec<OutputPiece>,
    /// [`FinishReason::Stop`] becomes [`FinishReason::ToolCalls`] when calls were made.
    pub reason: FinishReason,
    /// The stop sequence that matched.
    pub stop_sequence: Option<String>,
}

/// Output of one sequence. Work for each token does not depend on how many there were.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub struct OutputStream {
    detokenizer: Detokenizer,
    /// Stop sequences that are special tokens, which are not text.
    token_stops: Vec<(u32, String)>,
    raw_stops: Option<StopMatcher>,
    parser: OutputParser,
    visible_stops: Option<StopMatcher>,
    /// No stop sequence counts before this many tokens.
    min_tokens: usize,
    pushed_tokens: usize,
    stop_sequence: Option<String>,
    /// The output ended at a piece of the parser's: what the parser still holds comes after it.
    is_cut: bool,
    made_calls: bool,
    /// A call has begun and not ended.
    in_call: bool,
    /// The output is over with its first tool call.
    single_tool_call: bool,
    reasoning_close: Option<&'static str>,
    /// True once the output is over.
    is_over: bool,
    /// Bytes of text that the detokenizer has given.
    detokenized: usize,
    /// Bytes whose piece the parser has given.
    parsed: usize,
    /// Where the text of each token ends that has not been reported yet.
    token_ends: VecDeque<usize>,
}

/// Stop sequences by where they are looked for.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    /// Special tokens, with their text.
    pub(crate) tokens: Vec<(u32, String)>,
    /// Stop sequences in all generated text, markers of the output format included.
    pub(crate) raw: Vec<String>,
    /// Stop sequences in the text that the client sees.
    pub(crate) visible: Vec<String>,
    pub(crate) min_tokens: u32,
}

impl OutputStream {
    pub(crate) fn new(
        detokenizer: Detokenizer,
        parser: OutputParser,
        stops: Stops,
        single_tool_call: bool,
        reasoning_close: Option<&'static str>,
    ) -> Self {
        let matcher =
            |sequences: Vec<String>| (!sequences.is_empty()).then(|| StopMatcher::new(sequences));
        Self {
            detokenizer,
            token_stops: stops.tokens,
            raw_stops: matcher(stops.raw),
            parser,
            visible_stops: matcher(stops.visible),
            min_tokens: stops.min_tokens as usize,
            pushed_tokens: 0,
            stop_sequence: None,
            is_cut: false,
            made_calls: false,
            in_call: false,
            single_tool_call,
            reasoning_close,
            is_over: false,
            detokenized: 0,
            parsed: 0,
            token_ends: VecDeque::new(),
        }
    }

    /// Takes a token and gives what is certain now. The token that ends a generation is not
    /// pushed. Once the output has stopped nothing comes any more.
    pub fn push(&mut self, id: u32) -> Vec<OutputPiece> {
        let mut pieces = Vec::new();
        if self.is_stopped() {
            return pieces;
        }
        self.pushed_tokens += 1;
        let token_stop = self.token_stops.iter().find(|(stop, _)| *stop == id);
        if let (Some((_, text)), true) = (token_stop, self.stops_count()) {
            let text = text.clone();
            self.end_text(&mut pieces);
            self.stop_sequence.get_or_insert(text);
            return pieces;
        }
        let text = self.detokenizer.push(id).to_owned();
        self.detokenized += text.len();
        // Part of a character ends with the character.
        let end = self.detokenized + usize::from(self.detokenizer.is_pending());
        self.token_ends.push_back(end);
        self.feed(&text, &mut pieces);
        pieces
    }

    /// A stop sequence has matched, or the only tool call has been made: the generation is over.
    /// Tokens not reported by [`Self::finish`] belong to the text that was cut.
    pub fn is_stopped(&self) -> bool {
        self.stop_sequence.is_some() || self.is_over
    }

    /// Whether the model is thinking.
    pub fn in_reasoning(&self) -> bool {
        self.parser.in_reasoning()
    }

    /// The text that makes the model stop thinking, for budgets. `None`: its output has no
    /// reasoning blocks.
    pub fn reasoning_close(&self) -> Option<&'static str> {
        self.reasoning_close
    }

    /// No more tokens come. What was held back comes out, unless the model has not ended the output
    /// itself: then only what is certain to be text does, and no character that is not all there.
    pub fn finish(&mut self, reason: FinishReason) -> Finish {
        let mut pieces = Vec::new();
        let ending = match reason {
            FinishReason::Stop | FinishReason::ToolCalls if !self.is_stopped() => Ending::Whole,
            _ => Ending::Cut,
        };
        if ending == Ending::Whole {
            self.end_text(&mut pieces);
        }
        if !self.is_cut {
            if let Some(stops) = &mut self.raw_stops {
                let held = stops.flush();
                let spans = self.parser.push(&held);
                self.take_spans(spans, &mut pieces);
            }
            if let Some(stop) = self.stop_sequence.clone() {
                let spans = self.parser.stop(&stop);
                self.take_spans(spans, &mut pieces);
            }
        }
        if !self.is_cut {
            let spans = self.parser.finish(ending);
            self.take_spans(spans, &mut pieces);
        }
        if !self.is_cut {
            self.release_held(&mut pieces);
        }
        if !self.is_stopped() && !self.token_ends.is_empty() {
            let tokens = self.token_ends.len();
            self.token_ends.clear();
            match pieces.last_mut() {
                Some(last) => last.tokens += tokens,
                None => pieces.push(OutputPiece {
                    piece: if self.in_call {
                        Piece::ToolCall(CallPart::Arguments(String::new()))
                    } else {
                        Piece::Text(String::new())
                    },
                    tokens,
                }),
            }
        }
        let reason = match reason {
            FinishReason::Stop if self.made_calls && !self.in_call => FinishReason::ToolCalls,
            reason => reason,
        };
        Finish {
            pieces,
            reason,
            stop_sequence: self.stop_sequence.clone(),
        }
    }

    fn stops_count(&self) -> bool {
        self.pushed_tokens >= self.min_tokens
    }

    /// Takes what the detokenizer holds.
    fn end_text(&mut self, pieces: &mut Vec<OutputPiece>) {
        let tail = self.detokenizer.finish().to_owned();
        self.detokenized += tail.len();
        self.feed(&tail, pieces);
    }

    fn feed(&mut self, text: &str, pieces: &mut Vec<OutputPiece>) {
        if text.is_empty() {
            return;
        }
        let counts = self.stops_count();
        let mut free = String::new();
        let text = match &mut self.raw_stops {
            Some(stops) if counts => {
                self.stop_sequence = stops.push(text, &mut free).map(str::to_owned);
                free.as_str()
            }
            _ => text,
        };
        let spans = self.parser.push(text);
        self.take_spans(spans, pieces);
    }

    fn take_spans(&mut self, spans: Vec<Span>, pieces: &mut Vec<OutputPiece>) {
        for Span { piece, raw_len } in spans {
            if self.is_cut {
                return;
            }
            match piece {
                Piece::Text(text) => {
                    self.parsed += raw_len;
                    self.take_text(text, pieces);
                }
                Piece::Reasoning(_) | Piece::ToolCall(_) => {
                    let ends_call = piece == Piece::ToolCall(CallPart::End);
                    self.in_call = matches!(piece, Piece::ToolCall(_)) && !ends_call;
                    self.release_held(pieces);
                    self.parsed += raw_len;
                    self.report(piece, self.parsed, pieces);
                    self.made_calls |= ends_call;
                    if ends_call && self.single_tool_call {
                        self.is_over = true;
                        self.is_cut = true;
                    }
                }
            }
        }
    }

    /// Visible text that ends at `self.parsed`.
    fn take_text(&mut self, text: String, pieces: &mut Vec<OutputPiece>) {
        let counts = self.stops_count();
        match &mut self.visible_stops {
            Some(stops) if counts => {
                let start = self.parsed.saturating_sub(text.len() + stops.held());
                let mut free = String::new();
                if let Some(sequence) = stops.push(&text, &mut free) {
                    self.stop_sequence = Some(sequence.to_owned());
                    self.is_cut = true;
                }
                let end = start + free.len();
                self.report(Piece::Text(free), end, pieces);
            }
            _ => self.report(Piece::Text(text), self.parsed, pieces),
        }
    }

    /// Gives out what could have become a stop sequence.
    fn release_held(&mut self, pieces: &mut Vec<OutputPiece>) {
        if let Some(stops) = &mut self.visible_stops {
            let held = stops.flush();
            self.report(Piece::Text(held), self.parsed, pieces);
        }
    }

    /// Adds a piece that ends at byte `end` of the generated text.
    fn report(&mut self, piece: Piece, end: usize, pieces: &mut Vec<OutputPiece>) {
        let mut tokens = 0;
        while self.token_ends.front().is_some_and(|token| *token <= end) {
            self.token_ends.pop_front();
            tokens += 1;
        }
        let is_empty = match &piece {
            Piece::Text(text) | Piece::Reasoning(text) => text.is_empty(),
            Piece::ToolCall(_) => false,
        };
        if tokens > 0 || !is_empty {
            pieces.push(OutputPiece { piece, tokens });
        }
    }
}
