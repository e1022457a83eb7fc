//! The last lines a server wrote beside the protocol, to find out why it does not work.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

const LINES: usize = 100;
/// Longer lines are cut: some servers log whole documents.
const LINE_BYTES: usize = 2 * 1024;

#[derive(Debug, Default)]
pub(crate) struct LogTail {
    lines: Mutex<VecDeque<String>>,
}

impl LogTail {
    pub(crate) fn push(&self, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        let mut end = line.len().min(LINE_BYTES);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        let mut lines = self.lines.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line[..end].to_owned());
    }

    /// Oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().iter().cloned().collect()
    }

    pub(crate) fn last(&self) -> Option<String> {
        self.lines.lock().back().cloned()
    }

    pub(crate) fn clear(&self) {
        self.lines.lock().clear();
    }

    /// Takes in lines until the writer ends.
    pub(crate) async fn follow(&self, reader: impl AsyncRead + Unpin) {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            let available = match reader.fill_buf().await {
                Ok([]) | Err(_) => break,
                Ok(available) => available,
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            // A line without an end must not fill the memory.
            let room = LINE_BYTES.saturating_sub(line.len());
            line.extend_from_slice(&available[..taken.min(room)]);
            reader.consume(taken);
            if end.is_some() {
                self.push(&String::from_utf8_lossy(&line));
                line.clear();
            }
        }
        self.push(&String::from_utf8_lossy(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keeps_the_last_lines() {
        let log = LogTail::default();
        let lines: Vec<_> = (0..150).map(|line| format!("line {line}\r\n")).collect();
        let text = lines.join("\n") + "\nthe end";
        log.follow(text.as_bytes()).await;
        let lines = log.lines();
        assert_eq!(lines.len(), 100);
        assert_eq!(lines[0], "line 51");
        assert_eq!(log.last().as_deref(), Some("the end"));
    }

    #[tokio::test]
    async fn cuts_lines_and_reads_what_is_no_text() {
        let log = LogTail::default();
        let mut text = "é".repeat(1 << 20).into_bytes();
        text.extend_from_slice(b"\n\xff\xfe\n");
        log.follow(&*text).await;
        let lines = log.lines();
        assert_eq!(lines[0].len(), LINE_BYTES);
        assert_eq!(lines[1], "\u{fffd}\u{fffd}");
    }
}
