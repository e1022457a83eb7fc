//! All files of a download at one commit: fetched in parallel, compared, given their names.

use std::{fs, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::{
    digest::is_intact,
    folder::Folder,
    job::FileState,
    options::Options,
    progress::{Progress, Tracked},
    stream::{Failure, Stream},
};
use crate::hub::{Error, Hub};

/// Less is not worth a connection.
const SMALLEST_RANGE: u64 = 8 << 20;

/// What a transfer needs.
pub(super) struct Transfer {
    pub hub: Hub,
    /// `owner/name`.
    pub model: String,
    pub commit: String,
    pub folder: Folder,
    pub progress: Arc<Progress>,
    /// Shared by all downloads.
    pub connections: Arc<Semaphore>,
    pub options: Options,
}

impl Transfer {
    /// Brings all files here. Dropping the future keeps what was written.
    pub(super) async fn run(&self) -> Result<(), Error> {
        // Collected: closures over borrowed items make futures that cannot be sent.
        let files: Vec<_> = self
            .progress
            .files
            .iter()
            .map(|file| self.file(file))
            .collect();
        stream::iter(files)
            .buffer_unordered(self.options.connections)
            .try_collect()
            .await
    }

    /// One file; what arrives wrongly is fetched once more.
    async fn file(&self, file: &Tracked) -> Result<(), Error> {
        if file.state() == FileState::Done {
            return Ok(());
        }
        for _ in 0..2 {
            self.receive(file).await?;
            file.set_state(FileState::Verifying);
            let (part, remote) = (self.folder.part(&file.remote), file.remote.clone());
            let finished = self.folder.finished(&file.remote);
            let has_finished = blocking(move || {
                let failed = Error::io(&part);
                if is_intact(&part, &remote).map_err(failed)? {
                    fs::rename(&part, &finished).map_err(Error::io(finished))?;
                    return Ok(true);
                }
                fs::remove_file(&part).map_err(Error::io(&part))?;
                Ok(false)
            })
            .await?;
            if has_finished {
                file.set_state(FileState::Done);
                return Ok(());
            }
            tracing::warn!(
                file = file.remote.path,
                "not as the hub has it; fetching it again"
            );
            file.discard();
            // Before there is a new part that an old journal would speak for.
            let (progress, folder) = (self.progress.clone(), self.folder.clone());
            blocking(move || progress.checkpoint(&folder)).await?;
        }
        Err(Error::Corrupt {
            file: file.remote.path.clone(),
        })
    }

    /// All missing bytes of a file, onto the disk for certain.
    async fn receive(&self, file: &Tracked) -> Result<(), Error> {
        let (part, size_bytes) = (self.folder.part(&file.remote), file.remote.size_bytes);
        let output = blocking(move || {
            let output = fs::OpenOptions::new()
                .create(true)
                .write(true)
                .truncate(false)
                .open(&part)
                .map_err(Error::io(&part))?;
            // Ranges are written where they belong; what is missing takes no disk yet.
            output.set_len(size_bytes).map_err(Error::io(&part))?;
            Ok(Arc::new(output))
        })
        .await?;
        let stream = Stream {
            transfer: self,
            file,
            output: output.clone(),
            elsewhere: Mutex::default(),
        };
        // All connections have something to do for a file of any size that is worth it.
        let share = size_bytes / self.options.connections.max(1) as u64;
        let most = self.options.range_bytes;
        let piece = share.clamp(SMALLEST_RANGE.min(most), most);
        let in_ranges = stream::iter(file.missing(piece))
            .map(|range| stream.fetch(range, false))
            .buffer_unordered(self.options.connections)
            .try_collect::<()>()
            .await;
        match in_ranges {
            Ok(()) => {}
            Err(Failure::NoRanges) => self.in_one_piece(&stream).await?,
            Err(Failure::Final(error)) => return Err(error),
        }
        let part = self.folder.part(&file.remote);
        blocking(move || output.sync_all().map_err(Error::io(part))).await
    }

    /// Downloads from the first missing byte to the end, over one connection at a time.
    async fn in_one_piece(&self, stream: &Stream<'_>) -> Result<(), Error> {
        let Some(first) = stream.file.missing(u64::MAX).into_iter().next() else {
            return Ok(());
        };
        let rest = first.start..stream.file.remote.size_bytes;
        match stream.fetch(rest, true).await {
            Ok(()) => Ok(()),
            Err(Failure::Final(error)) => Err(error),
            Err(Failure::NoRanges) => Err(Error::Unexpected("ranges came and went".into())),
        }
    }
}

/// Work that blocks, on a thread for it.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::Unexpected(error.to_string())))
}
