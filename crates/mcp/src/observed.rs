//! A server's output on its way to the protocol, with an eye on lines that do not belong there.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, ReadBuf};

use crate::log_tail::LogTail;

/// Bytes of a stray line that are kept.
const STRAY_BYTES: usize = 500;

/// Passes everything on and copies lines that are no JSON object into the log: a banner on standard
/// output is the most common mistake of servers, and the protocol skips it without a word.
pub(crate) struct Observed<R> {
    reader: R,
    log: Arc<LogTail>,
    line: Line,
}

enum Line {
    /// Nothing of it has been seen but white space.
    Start,
    Message,
    Stray(Vec<u8>),
}

impl<R> Observed<R> {
    pub(crate) fn new(reader: R, log: Arc<LogTail>) -> Self {
        Self {
            reader,
            log,
            line: Line::Start,
        }
    }

    fn see(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = piece.ends_with(b"\n");
            if let Line::Start = self.line {
                match piece.trim_ascii_start().first() {
                    None => continue,
                    Some(b'{' | b'[') => self.line = Line::Message,
                    Some(_) => self.line = Line::Stray(Vec::new()),
                }
            }
            if let Line::Stray(stray) = &mut self.line {
                let room = STRAY_BYTES.saturating_sub(stray.len());
                stray.extend_from_slice(&piece[..piece.len().min(room)]);
                if is_whole {
                    let text = String::from_utf8_lossy(stray);
                    self.log.push(&format!("(standard output) {}", text.trim()));
                }
            }
            if is_whole {
                self.line = Line::Start;
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Observed<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.reader).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = polled {
            self.see(&buffer.filled()[before..]);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stray_lines_are_noted_however_they_come() {
        let output = "Welcome to the server!\n\n  {\"id\": 1}\n é\n[1]\nlistening";
        for size in 1..output.len() {
            let log = Arc::new(LogTail::default());
            let mut observed = Observed::new((), log.clone());
            for piece in output.as_bytes().chunks(size) {
                observed.see(piece);
            }
            assert_eq!(
                log.lines(),
                [
                    "(standard output) Welcome to the server!",
                    "(standard output) é"
                ],
                "{size}"
            );
        }
    }
}
