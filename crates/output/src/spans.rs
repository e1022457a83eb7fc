//! Pieces as they are given out, and the text that each stands for.

use super::{CallPart, Piece, Span};

/// The pieces since they were last taken.
#[derive(Debug)]
pub(super) struct Spans {
    /// Bytes at the front that the prompt has, not the model's.
    primed: usize,
    spans: Vec<Span>,
}

impl Spans {
    /// `opened` is the end of the prompt where that belongs to the output.
    pub(super) fn behind(opened: &str) -> Self {
        Self {
            primed: opened.len(),
            spans: Vec::new(),
        }
    }

    pub(super) fn take(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }

    /// Appends a piece, joined to the one before where that is of the same kind.
    pub(super) fn push(&mut self, mut piece: Piece, raw_len: usize) {
        let primed = self.primed.min(raw_len);
        self.primed -= primed;
        let raw_len = raw_len - primed;
        if let (Piece::Text(text), 1..) = (&mut piece, primed) {
            // What the prompt has is not the model's text.
            text.drain(..text.len().saturating_sub(raw_len));
        }
        let more = match &piece {
            Piece::Text(text) | Piece::Reasoning(text) if text.is_empty() && raw_len == 0 => return,
            Piece::Text(text)
            | Piece::Reasoning(text)
            | Piece::ToolCall(CallPart::Arguments(text)) => text.as_str(),
            Piece::ToolCall(CallPart::Start { .. } | CallPart::End) => "",
        };
        if let Some(last) = self.spans.last_mut() {
            match (&mut last.piece, &piece) {
                // Text is traced to its tokens from its end, so no marker may hide behind it.
                (Piece::Text(text), Piece::Text(_)) if text.is_empty() || raw_len == more.len() => {
                    text.push_str(more);
                    last.raw_len += raw_len;
                    return;
                }
                (Piece::Reasoning(text), Piece::Reasoning(_))
                | (
                    Piece::ToolCall(CallPart::Arguments(text)),
                    Piece::ToolCall(CallPart::Arguments(_)),
                ) => {
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
