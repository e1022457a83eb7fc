//! A block that the parser is inside of.

use super::{Block, CallPart, Piece, Sink, Tools, formats::Format};

/// A block that is being read.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub(super) format: &'static dyn Format,
    pub(super) reader: Box<dyn Block>,
    /// The marker that began it, empty when there was none.
    pub(super) open: &'static str,
    /// Text that was taken and is in no piece yet.
    pub(super) held: String,
    /// Text not taken yet.
    pub(super) rest: String,
    pub(super) out: Sink,
    /// It has given something.
    pub(super) is_certain: bool,
    /// White space that is reasoning only if more of it follows.
    spaces: String,
    has_reasoned: bool,
    /// Arguments of the latest call, as far as they have been given out.
    arguments: String,
    pub(super) has_called: bool,
}

impl OpenBlock {
    pub(super) fn new(format: &'static dyn Format, open: &'static str, tools: &Tools) -> Self {
        Self {
            format,
            reader: format.block(open, tools),
            open,
            held: open.into(),
            rest: String::new(),
            out: Sink::default(),
            is_certain: false,
            spaces: String::new(),
            has_reasoned: false,
            arguments: String::new(),
            has_called: false,
        }
    }

    /// Whether the latest call needs no more arguments.
    pub(super) fn has_whole_arguments(&self) -> bool {
        macmlx_json::read_object(&self.arguments).is_ok()
    }

    /// Markers that may end a call.
    pub(super) fn closing_markers(&self) -> impl Iterator<Item = &'static str> {
        self.format
            .close()
            .into_iter()
            .chain(self.format.inner_markers())
    }

    /// Remembers what has been given; reasoning loses the white space at its ends.
    pub(super) fn note(&mut self, piece: Piece) -> Piece {
        self.is_certain = true;
        let text = match piece {
            Piece::Reasoning(text) => text,
            piece => {
                self.has_called |= matches!(piece, Piece::ToolCall(_));
                match &piece {
                    Piece::ToolCall(CallPart::Start { .. }) => self.arguments.clear(),
                    Piece::ToolCall(CallPart::Arguments(text)) => self.arguments.push_str(text),
                    Piece::ToolCall(CallPart::End) | Piece::Text(_) | Piece::Reasoning(_) => {}
                }
                return piece;
            }
        };
        let text = if self.has_reasoned {
            text.as_str()
        } else {
            text.trim_start()
        };
        let body = text.trim_end();
        let mut out = String::new();
        if !body.is_empty() {
            self.has_reasoned = true;
            out = std::mem::take(&mut self.spaces) + body;
        }
        self.spaces.push_str(&text[body.len()..]);
        Piece::Reasoning(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats;

    #[test]
    fn arguments_are_whole_however_they_are_written() {
        let format = formats::generic();
        for (written, is_whole) in [
            ("", false),
            ("{\"a\": 1", false),
            ("[]", false),
            ("{}", true),
            ("{\"a\": \"cut \\ud83d\"}", true),
        ] {
            let mut block = OpenBlock::new(format, "", &Tools::default());
            block.note(Piece::ToolCall(CallPart::Arguments(written.into())));
            assert_eq!(block.has_whole_arguments(), is_whole, "{written}");
        }
    }
}
