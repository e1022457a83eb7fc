//! Reads server-sent events, as WHATWG HTML defines them, from text or from a live stream.

use std::fmt;

use futures::{Stream, StreamExt, stream::BoxStream};

/// What a stream holds between two blank lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Event {
        /// The `event:` field.
        name: Option<String>,
        /// The `data:` lines, joined.
        data: String,
    },
    Comment(String),
}

impl Record {
    /// The data of an event.
    pub fn data(&self) -> Option<&str> {
        match self {
            Self::Event { data, .. } => Some(data),
            Self::Comment(_) => None,
        }
    }
}

/// All records of a whole stream.
pub fn parse(text: &str) -> Vec<Record> {
    text.split("\n\n").filter_map(record).collect()
}

fn record(block: &str) -> Option<Record> {
    let mut name = None;
    let mut data: Option<String> = None;
    let mut comment = None;
    for line in block.lines() {
        match line.split_once(':') {
            Some(("", text)) => comment = Some(text.trim_start().to_owned()),
            Some(("event", text)) => name = Some(text.trim_start().to_owned()),
            Some(("data", text)) => {
                let text = text.strip_prefix(' ').unwrap_or(text);
                match &mut data {
                    Some(data) => data.extend(["\n", text]),
                    None => data = Some(text.to_owned()),
                }
            }
            _ => {}
        }
    }
    match data {
        Some(data) => Some(Record::Event { name, data }),
        None => comment.map(Record::Comment),
    }
}

/// Reads records as they arrive.
pub struct Reader {
    chunks: BoxStream<'static, Vec<u8>>,
    unread: Vec<u8>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Reader")
            .field("unread", &self.unread)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// A reader of a response body. A broken stream looks like its end, without a last record.
    pub fn new<B, E>(chunks: impl Stream<Item = Result<B, E>> + Send + 'static) -> Self
    where
        B: AsRef<[u8]> + Send + 'static,
        E: Send + 'static,
    {
        let chunks = chunks
            .take_while(|chunk| std::future::ready(chunk.is_ok()))
            .filter_map(|chunk| std::future::ready(chunk.ok()))
            .map(|chunk| chunk.as_ref().to_vec());
        Self {
            chunks: chunks.boxed(),
            unread: Vec::new(),
        }
    }

    /// The next record, or `None` at the end.
    pub async fn next(&mut self) -> Option<Record> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.unread.drain(..end + 2).collect();
                if let Some(record) = record(&String::from_utf8_lossy(&block)) {
                    return Some(record);
                }
                continue;
            }
            self.unread.extend(self.chunks.next().await?);
        }
    }

    /// All records up to the end.
    pub async fn rest(mut self) -> Vec<Record> {
        let mut records = Vec::new();
        while let Some(record) = self.next().await {
            records.push(record);
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use futures::{executor::block_on, stream};

    use super::*;

    const TEXT: &str = "event: a\ndata: 1\ndata: 2\n\n: hi\n\ndata:{}\n\n";

    fn expected() -> Vec<Record> {
        vec![
            Record::Event {
                name: Some("a".into()),
                data: "1\n2".into(),
            },
            Record::Comment("hi".into()),
            Record::Event {
                name: None,
                data: "{}".into(),
            },
        ]
    }

    #[test]
    fn text_is_cut_into_records() {
        assert_eq!(parse(TEXT), expected());
    }

    #[test]
    fn records_are_found_at_every_split() {
        for split in 0..TEXT.len() {
            let (head, tail) = TEXT.split_at(split);
            let chunks = [head, tail].map(|part| Ok::<_, ()>(part.as_bytes().to_vec()));
            let reader = Reader::new(stream::iter(chunks));
            assert_eq!(block_on(reader.rest()), expected(), "{split}");
        }
    }
}
