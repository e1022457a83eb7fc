//! A server's output on its way to the protocol, which reads lines of strict JSON and skips all
//! others without a word: a call would wait for its answer for good.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};

use crate::log_tail::LogTail;

/// Bytes of a stray line that are kept.
const STRAY_BYTES: usize = 500;

/// Longest line that is looked into. The protocol takes none that are longer.
const LINE_BYTES: usize = 16 << 20;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// Passes messages on as strict JSON, and copies other lines into the log: a banner on standard output
/// is the most common mistake of servers.
pub(crate) struct Observed<R> {
    reader: R,
    log: Arc<LogTail>,
    line: Line,
    /// What may be passed on.
    ready: Vec<u8>,
    /// Bytes of `ready` that have been.
    passed: usize,
}

enum Line {
    /// Nothing of it has been seen but white space.
    Start,
    /// As far as it has come.
    Message(Vec<u8>),
    /// It is too long, and passed on as it comes.
    Long,
    Stray(Vec<u8>),
}

impl<R> Observed<R> {
    pub(crate) fn new(reader: R, log: Arc<LogTail>) -> Self {
        Self {
            reader,
            log,
            line: Line::Start,
            ready: Vec::new(),
            passed: 0,
        }
    }

    fn see(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if let Line::Start = self.line {
                // A byte order mark is no white space, and comes before a message as well as a banner.
                match piece.trim_ascii_start().first() {
                    None => continue,
                    Some(b'{' | b'[' | 0xEF) => self.line = Line::Message(Vec::new()),
                    Some(_) => self.line = Line::Stray(Vec::new()),
                }
            }
            let is_whole = piece.ends_with(b"\n");
            match &mut self.line {
                Line::Start => {}
                Line::Message(line) => {
                    line.extend_from_slice(piece);
                    if line.len() > LINE_BYTES {
                        self.ready.append(line);
                        self.line = Line::Long;
                    } else if is_whole {
                        let line = std::mem::take(line);
                        self.pass(&line);
                    }
                }
                Line::Long => self.ready.extend_from_slice(piece),
                Line::Stray(stray) => {
                    let room = STRAY_BYTES.saturating_sub(stray.len());
                    stray.extend_from_slice(&piece[..piece.len().min(room)]);
                    if is_whole {
                        let stray = std::mem::take(stray);
                        self.note(&stray);
                    }
                }
            }
            if is_whole {
                self.line = Line::Start;
            }
        }
    }

    /// Passes a whole line on, or notes that it is no message.
    fn pass(&mut self, line: &[u8]) {
        match macmlx_json::parse_message(line.trim_ascii()) {
            Ok(mut message @ (Value::Object(_) | Value::Array(_))) => {
                mend_ids(&mut message);
                self.ready.extend_from_slice(message.to_string().as_bytes());
                self.ready.push(b'\n');
            }
            _ => self.note(&line[..line.len().min(STRAY_BYTES)]),
        }
    }

    fn note(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        self.log.push(&format!("(standard output) {}", text.trim()));
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Observed<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.passed == this.ready.len() {
            this.ready.clear();
            this.passed = 0;
            let mut bytes = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.reader).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.see(read.filled());
        }
        let rest = &this.ready[this.passed..];
        let taken = &rest[..rest.len().min(buffer.remaining())];
        buffer.put_slice(taken);
        this.passed += taken.len();
        Poll::Ready(Ok(()))
    }
}

/// Makes integers of what the protocol compares or counts, and some languages write as fractions.
/// Servers that keep ids as text answer with text; ours are all numbers.
fn mend_ids(message: &mut Value) {
    if let Value::Array(messages) = message {
        messages.iter_mut().for_each(mend_ids);
        return;
    }
    let is_answer = message.get("method").is_none();
    for place in [
        "/id",
        "/error/code",
        "/params/progressToken",
        "/params/requestId",
    ] {
        if let Some(number) = message.pointer_mut(place) {
            macmlx_json::make_integers(number);
        }
    }
    if is_answer
        && let Some(id) = message.get_mut("id")
        && let Some(number) = id.as_str().and_then(|text| text.parse::<u64>().ok())
    {
        *id = number.into();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// What is passed on of output that comes in pieces, and what is noted.
    fn see<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (String, Vec<String>) {
        let log = Arc::new(LogTail::default());
        let mut observed = Observed::new((), log.clone());
        pieces.for_each(|piece| observed.see(piece));
        (String::from_utf8(observed.ready).unwrap(), log.lines())
    }

    #[test]
    fn stray_lines_are_noted_however_they_come() {
        let output = "Welcome to the server!\n\n  {\"id\": 1}\n é\n[1]\n{ not JSON\nlistening";
        for size in 1..output.len() {
            assert_eq!(
                see(output.as_bytes().chunks(size)),
                (
                    "{\"id\":1}\n[1]\n".to_owned(),
                    vec![
                        "(standard output) Welcome to the server!".to_owned(),
                        "(standard output) é".to_owned(),
                        "(standard output) { not JSON".to_owned(),
                    ]
                ),
                "{size}"
            );
        }
    }

    #[test]
    fn messages_are_passed_on_as_strict_json() {
        for (line, message) in [
            (
                &b"{\"id\":1,\"result\":{\"a\":1.0}}\r\n"[..],
                "{\"id\":1,\"result\":{\"a\":1.0}}\n",
            ),
            (b"\xef\xbb\xbf{\"id\":1}\n", "{\"id\":1}\n"),
            (
                b"{\"text\":\"cut \\ud83d\"}\n",
                "{\"text\":\"cut \u{fffd}\"}\n",
            ),
            (b"{\"text\":\"\xff\"}\n", "{\"text\":\"\u{fffd}\"}\n"),
            (
                b"{\"a\":[NaN,-Infinity,\"NaN\"]}\n",
                "{\"a\":[null,-1e+308,\"NaN\"]}\n",
            ),
            (b"{\"id\":7.0}\n", "{\"id\":7}\n"),
            (b"[{\"id\":\"7\"}]\n", "[{\"id\":7}]\n"),
            (
                b"{\"id\":1,\"error\":{\"code\":-32000.0}}\n",
                "{\"id\":1,\"error\":{\"code\":-32000}}\n",
            ),
            (
                b"{\"method\":\"n\",\"params\":{\"progressToken\":2.0,\"progress\":1.0}}\n",
                "{\"method\":\"n\",\"params\":{\"progressToken\":2,\"progress\":1.0}}\n",
            ),
            // A server's own request keeps its id.
            (
                b"{\"id\":\"7\",\"method\":\"ping\"}\n",
                "{\"id\":\"7\",\"method\":\"ping\"}\n",
            ),
        ] {
            let (passed, stray) = see(std::iter::once(line));
            assert_eq!((passed.as_str(), stray.len()), (message, 0));
        }
    }

    #[tokio::test]
    async fn all_of_it_is_read_through_small_buffers() {
        let wide = format!("{{\"text\":\"{}\"}}\n", "x".repeat(3 * READ_BYTES));
        let lines = format!("banner\n{wide}{{\"id\":1}}\n");
        let noted = Arc::new(LogTail::default());
        let mut through = Observed::new(lines.as_bytes(), noted.clone());
        let (mut read, mut buffer) = (Vec::new(), [0; 100]);
        loop {
            let length = through.read(&mut buffer).await.unwrap();
            if length == 0 {
                break;
            }
            read.extend_from_slice(&buffer[..length]);
        }
        assert_eq!(
            String::from_utf8(read).unwrap(),
            format!("{wide}{{\"id\":1}}\n")
        );
        assert_eq!(noted.lines().len(), 1);
    }
}
