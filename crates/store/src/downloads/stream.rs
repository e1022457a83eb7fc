//! Ranges of a file over connections, each tried again until its bytes are here.

use std::{fs::File, ops::Range, sync::Arc, time::Instant};

use parking_lot::Mutex;
use reqwest::{Response, StatusCode, Url, header};

use super::{
    job::FileState,
    progress::Tracked,
    transfer::{Transfer, blocking},
};
use crate::hub::{Attempts, Error, Trouble};

/// Bytes that are written at once, unless they come slowly.
const BUFFER_BYTES: usize = 1 << 20;

/// Where the bytes of a file come from and go to.
pub(super) struct Stream<'a> {
    pub transfer: &'a Transfer,
    pub file: &'a Tracked,
    pub output: Arc<File>,
    /// Where the hub sent us for this file; such addresses expire.
    pub elsewhere: Mutex<Option<Url>>,
}

/// Why a connection ended before its range did.
pub(super) enum Interruption {
    Trouble(Trouble),
    /// The server sends the whole file, whatever is asked for.
    NoRanges,
}

impl From<Trouble> for Interruption {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// What a range could not be fetched for.
pub(super) enum Failure {
    Final(Error),
    NoRanges,
}

impl Stream<'_> {
    /// Fetches a range. Where ranges are ignored, the beginning is only read through if `may_skip`.
    pub(super) async fn fetch(&self, range: Range<u64>, may_skip: bool) -> Result<(), Failure> {
        let mut position = range.start;
        let mut attempts = Attempts::new(self.transfer.options.patience);
        while position < range.end {
            let before = position;
            let ended = {
                // Closed never; a permit lasts for one connection.
                let _permit = self.transfer.connections.acquire().await;
                self.file.set_state(FileState::Downloading);
                self.connect(&mut position, range.end, may_skip).await
            };
            if position > before {
                attempts.reset();
            }
            let trouble = match ended {
                Ok(()) if position >= range.end => break,
                Ok(()) => Trouble::passing(self.offline("the connection ended early")),
                Err(Interruption::Trouble(trouble)) => trouble,
                Err(Interruption::NoRanges) => return Err(Failure::NoRanges),
            };
            tracing::warn!(
                file = self.file.remote.path, position, error = %trouble.error, "download interrupted"
            );
            attempts.after(trouble).await.map_err(Failure::Final)?;
        }
        Ok(())
    }

    /// One connection: from `position` for as long as it lasts.
    async fn connect(
        &self,
        position: &mut u64,
        end: u64,
        may_skip: bool,
    ) -> Result<(), Interruption> {
        let size = self.file.remote.size_bytes;
        let is_whole = *position == 0 && end == size;
        let range = (!is_whole).then_some(*position..end);
        let response = self.open(range.as_ref()).await?;
        let mut skip = 0;
        match response.status() {
            StatusCode::PARTIAL_CONTENT => self.check_range(&response, *position)?,
            _ if is_whole => self.check_length(&response)?,
            _ if may_skip => skip = *position,
            _ => return Err(Interruption::NoRanges),
        }
        self.read(response, position, end, skip).await
    }

    /// Asks where the hub sent us before, else the hub.
    async fn open(&self, range: Option<&Range<u64>>) -> Result<Response, Trouble> {
        let Transfer {
            hub, model, commit, ..
        } = self.transfer;
        let known = self.elsewhere.lock().clone();
        if let Some(url) = known {
            match self.in_time(hub.open(&url, range, model)).await {
                Ok(response) => return Ok(response),
                Err(trouble) => {
                    tracing::debug!(error = %trouble.error, "asking the hub for another address");
                    *self.elsewhere.lock() = None;
                }
            }
        }
        let url = hub.file_url(model, commit, &self.file.remote.path);
        let response = self.in_time(hub.open(&url, range, model)).await?;
        if *response.url() != url {
            *self.elsewhere.lock() = Some(response.url().clone());
        }
        Ok(response)
    }

    /// `bytes 5-9/10` must begin where we are, in a file as long as the hub lists it.
    fn check_range(&self, response: &Response, position: u64) -> Result<(), Trouble> {
        let text = response
            .headers()
            .get(header::CONTENT_RANGE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let parsed = text
            .strip_prefix("bytes ")
            .and_then(|text| text.split_once('/'))
            .and_then(|(range, size)| Some((range.split_once('-')?.0.parse::<u64>().ok()?, size)));
        match parsed {
            Some((start, size))
                if start == position
                    && (size == "*" || size.parse() == Ok(self.file.remote.size_bytes)) =>
            {
                Ok(())
            }
            _ => Err(self.wrong(&format!("range `{text}`"))),
        }
    }

    fn check_length(&self, response: &Response) -> Result<(), Trouble> {
        match response.content_length() {
            Some(length) if length != self.file.remote.size_bytes => {
                Err(self.wrong(&format!("{length} bytes")))
            }
            _ => Ok(()),
        }
    }

    /// Something between the hub and us is wrong; another connection may be better.
    fn wrong(&self, what: &str) -> Trouble {
        let remote = &self.file.remote;
        Trouble::passing(Error::Unexpected(format!(
            "{what} of {}, which has {} bytes",
            remote.path, remote.size_bytes
        )))
    }

    async fn read(
        &self,
        mut response: Response,
        position: &mut u64,
        end: u64,
        mut skip: u64,
    ) -> Result<(), Interruption> {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES.min((end - *position) as usize));
        let mut written = Instant::now();
        // Written too late, they would miss the next journal.
        let longest_wait = self.transfer.options.checkpoint / 2;
        let ended = loop {
            let have = *position + buffer.len() as u64;
            if have >= end {
                break Ok(());
            }
            let chunk = async {
                let chunk = response.chunk().await;
                chunk.map_err(|error| self.transfer.hub.lost(&error))
            };
            let chunk = match self.in_time(chunk).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break Ok(()),
                Err(trouble) => break Err(trouble),
            };
            self.transfer.progress.count_received(chunk.len() as u64);
            let skipped = skip.min(chunk.len() as u64);
            skip -= skipped;
            let wanted = (chunk.len() as u64 - skipped).min(end - have);
            let first = skipped as usize;
            buffer.extend_from_slice(&chunk[first..first + wanted as usize]);
            if buffer.len() >= BUFFER_BYTES
                || (!buffer.is_empty() && written.elapsed() >= longest_wait)
            {
                buffer = self.write(buffer, position).await?;
                written = Instant::now();
            }
        };
        self.write(buffer, position).await?;
        Ok(ended?)
    }

    /// Writes at `position` and moves it on; returns the buffer, empty.
    async fn write(&self, buffer: Vec<u8>, position: &mut u64) -> Result<Vec<u8>, Trouble> {
        if buffer.is_empty() {
            return Ok(buffer);
        }
        let (output, offset) = (self.output.clone(), *position);
        let write_at = self.transfer.options.write_at;
        let path = self.transfer.folder.part(&self.file.remote);
        let mut buffer = blocking(move || {
            write_at(&output, &buffer, offset).map_err(Error::io(path))?;
            Ok(buffer)
        })
        .await
        .map_err(Trouble::last)?;
        let end = offset + buffer.len() as u64;
        self.file.wrote(offset..end);
        *position = end;
        buffer.clear();
        Ok(buffer)
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let stall = self.transfer.options.stall;
        tokio::time::timeout(stall, work).await.unwrap_or_else(|_| {
            let reason = format!("nothing arrived for {} s", stall.as_secs());
            Err(Trouble::passing(self.offline(&reason)))
        })
    }

    fn offline(&self, reason: &str) -> Error {
        self.transfer.hub.offline(reason)
    }
}
