//! One file from the hub: appended to what is there, tried again when the connection is lost,
//! checked against the hub's own digest.

use std::{
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::StreamExt;
use hf_hub::{HFRepository, RepoTypeModel};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

use super::{
    Error, Hub,
    error::{offline, translate},
};

/// Connections lost in a row without a new byte, after which the pull ends.
const MAX_BARREN_ATTEMPTS: u32 = 4;
/// A connection that says nothing for this long is lost.
const SILENCE: Duration = Duration::from_mins(1);
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// A file as the hub lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remote {
    pub path: String,
    pub size_bytes: u64,
    /// SHA-256 in hexadecimal, of large files.
    pub sha256: Option<String>,
}

/// Where a download's files go and come from.
pub(super) struct Download<'a> {
    pub hub: &'a Hub,
    pub repo: &'a HFRepository<RepoTypeModel>,
    /// `owner/name`, for messages.
    pub id: &'a str,
    pub commit: &'a str,
    pub folder: &'a Path,
}

/// What happens to a file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// More bytes arrived.
    Received(u64),
    /// What was there could not be used; that many bytes start anew.
    Discarded(u64),
    Verifying,
}

impl Download<'_> {
    pub(super) fn finished(&self, file: &Remote) -> PathBuf {
        self.folder.join(&file.path)
    }

    fn part(&self, file: &Remote) -> PathBuf {
        self.folder.join(format!("{}.part", file.path))
    }

    /// Bytes of a file that earlier attempts left.
    pub(super) fn present_bytes(&self, file: &Remote) -> u64 {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        if self.finished(file).is_file() {
            return file.size_bytes;
        }
        size(&self.part(file)).min(file.size_bytes)
    }

    /// Brings a file here, unless it is.
    pub(super) async fn fetch(
        &self,
        file: &Remote,
        step: &mut (dyn FnMut(Step) + Send),
    ) -> Result<(), Error> {
        let finished = self.finished(file);
        if finished.is_file() {
            return Ok(());
        }
        let part = self.part(file);
        for _ in 0..2 {
            self.receive(file, &part, step).await?;
            step(Step::Verifying);
            if self.is_intact(file, &part).await? {
                return tokio::fs::rename(&part, &finished)
                    .await
                    .map_err(Error::io(finished));
            }
            step(Step::Discarded(file.size_bytes));
            tokio::fs::remove_file(&part)
                .await
                .map_err(Error::io(&part))?;
        }
        Err(Error::Corrupt {
            file: file.path.clone(),
        })
    }

    /// Appends until the part has the file's size.
    async fn receive(
        &self,
        file: &Remote,
        part: &Path,
        step: &mut (dyn FnMut(Step) + Send),
    ) -> Result<(), Error> {
        let mut output = tokio::fs::OpenOptions::new()
            .create(true)
            .append(false)
            .write(true)
            .truncate(false)
            .open(part)
            .await
            .map_err(Error::io(part))?;
        let mut position = output
            .seek(std::io::SeekFrom::End(0))
            .await
            .map_err(Error::io(part))?;
        if position > file.size_bytes {
            restart(&mut output, &mut position, part).await?;
        }
        let mut barren = 0;
        while position < file.size_bytes {
            let before = position;
            let lost = match self
                .stream(file, &mut output, &mut position, part, step)
                .await
            {
                Ok(()) => None,
                Err(Interruption::Final(error)) => return Err(error),
                Err(Interruption::Lost(error)) => Some(error),
            };
            barren = if position > before { 0 } else { barren + 1 };
            if position < file.size_bytes && barren >= MAX_BARREN_ATTEMPTS {
                return Err(lost.unwrap_or_else(|| Error::Corrupt {
                    file: file.path.clone(),
                }));
            }
            if lost.is_some() {
                tracing::warn!(file = file.path, position, "connection lost; going on");
                tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(barren)).await;
            }
        }
        output.flush().await.map_err(Error::io(part))?;
        output.sync_all().await.map_err(Error::io(part))
    }

    /// One connection: from `position` for as long as it lasts.
    async fn stream(
        &self,
        file: &Remote,
        output: &mut tokio::fs::File,
        position: &mut u64,
        part: &Path,
        step: &mut (dyn FnMut(Step) + Send),
    ) -> Result<(), Interruption> {
        let lost = |error: &hf_hub::HFError| match translate(error, self.id, self.hub) {
            Some(error) => Interruption::Final(error),
            None => Interruption::Lost(offline(error, self.hub)),
        };
        let range = (*position > 0).then_some(*position..file.size_bytes);
        let (_, mut stream) = self
            .repo
            .download_file_stream()
            .filename(&file.path)
            .revision(self.commit)
            .maybe_range(range)
            .send()
            .await
            .map_err(|error| lost(&error))?;
        loop {
            let chunk = match tokio::time::timeout(SILENCE, stream.next()).await {
                Ok(None) => break,
                Ok(Some(chunk)) => chunk.map_err(|error| lost(&error))?,
                Err(silence) => return Err(Interruption::Lost(offline(&silence, self.hub))),
            };
            // A server that ignores ranges sends the beginning again, so more than is missing.
            if *position + chunk.len() as u64 > file.size_bytes {
                step(Step::Discarded(*position));
                restart(output, position, part)
                    .await
                    .map_err(Interruption::Final)?;
                return Ok(());
            }
            output
                .write_all(&chunk)
                .await
                .map_err(|error| Interruption::Final(Error::io(part)(error)))?;
            *position += chunk.len() as u64;
            step(Step::Received(chunk.len() as u64));
        }
        // Written bytes are on their way to the file only once flushed.
        output
            .flush()
            .await
            .map_err(|error| Interruption::Final(Error::io(part)(error)))
    }

    async fn is_intact(&self, file: &Remote, part: &Path) -> Result<bool, Error> {
        let Some(expected) = file.sha256.clone() else {
            return Ok(true);
        };
        let path = part.to_path_buf();
        let digest = tokio::task::spawn_blocking(move || digest(&path))
            .await
            .map_err(|error| Error::Unexpected(error.to_string()))?
            .map_err(Error::io(part))?;
        Ok(digest.eq_ignore_ascii_case(&expected))
    }
}

enum Interruption {
    /// Trying again cannot help.
    Final(Error),
    /// The error to report if trying again does not help.
    Lost(Error),
}

async fn restart(
    output: &mut tokio::fs::File,
    position: &mut u64,
    part: &Path,
) -> Result<(), Error> {
    output.flush().await.map_err(Error::io(part))?;
    output.set_len(0).await.map_err(Error::io(part))?;
    output
        .seek(std::io::SeekFrom::Start(0))
        .await
        .map_err(Error::io(part))?;
    *position = 0;
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

fn digest(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    Ok(hex(&hasher.finalize()))
}
