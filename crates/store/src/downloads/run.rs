//! The course of one download, from the list of its files to the model's folder.

use std::{pin::pin, sync::Arc, time::Instant};

use futures::FutureExt;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    folder::{Folder, Lock},
    job::{Failure, State},
    progress::Progress,
    record::Record,
    shared::Shared,
    space,
    transfer::{Transfer, blocking},
};
use crate::hub::{Error, Hub, Reference, Repository};

enum Outcome {
    Done,
    Stopped,
    Failed(Error),
}

/// Downloads until the end, or until it is told to stop.
pub(super) async fn run(
    shared: Arc<Shared>,
    id: Uuid,
    lock: Lock,
    mut stop: oneshot::Receiver<()>,
) {
    let outcome = course(&shared, id, &mut stop)
        .await
        .unwrap_or_else(Outcome::Failed);
    let rested = shared.read(id, |entry| {
        let mut record = entry.record.clone();
        record.holder = None;
        (record.state, record.error) = match &outcome {
            Outcome::Done => (State::Done, None),
            Outcome::Stopped => (State::Paused, None),
            Outcome::Failed(error) => {
                tracing::info!(model = record.model, %error, "download failed");
                (State::Failed, Some(Failure::from(error)))
            }
        };
        record
    });
    let Some(rested) = rested else {
        return;
    };
    let is_empty = shared.read(id, |entry| {
        entry.progress.as_ref().is_none_or(|p| p.done_bytes() == 0) && !entry.is_kept
    });
    // Followers are told; a row in the list would be of no use to anyone else.
    let is_forgotten = rested.state == State::Failed && is_empty == Some(true);
    let (folder, record) = (shared.folder(&rested.model), rested.clone());
    let settled = blocking(move || match record.state {
        // Of a finished download nothing is left to save.
        State::Done => Ok(()),
        _ if is_forgotten => folder.remove(),
        _ => folder.write_record(&record),
    })
    .await;
    if let Err(error) = settled {
        tracing::warn!(%error, "cannot save the state of a download");
    }
    // Who sees it rest may set it to work again at once.
    drop(lock);
    shared.change(id, |entry| {
        entry.running = None;
        if let Some(progress) = &entry.progress {
            progress.come_to_rest();
        }
        entry.record.holder = None;
        entry.record.error = rested.error;
        entry.set_state(rested.state);
    });
    shared.forget_done();
    if is_forgotten {
        shared.forget(id);
    }
}

async fn course(
    shared: &Arc<Shared>,
    id: Uuid,
    stop: &mut oneshot::Receiver<()>,
) -> Result<Outcome, Error> {
    // The place in the queue is taken first; meanwhile the files are asked for, so that the size is
    // known before the turn.
    let mut turn = pin!(shared.slots.acquire());
    let first = turn.as_mut().now_or_never();
    if first.is_some() {
        shared.change(id, |entry| entry.set_state(State::Listing));
    }
    let (hub, repository) = tokio::select! {
        biased;
        _ = &mut *stop => return Ok(Outcome::Stopped),
        listed = list(shared, id) => listed?,
    };
    // Work on the disk is short and not left behind.
    let (transfer, record) = prepare(shared, id, hub, repository).await?;
    // Held until the end of the download.
    let _slot = if let Some(slot) = first {
        slot
    } else {
        tokio::select! {
            biased;
            _ = &mut *stop => return Ok(Outcome::Stopped),
            slot = turn => slot,
        }
    };
    begin(shared, id, &transfer, &record).await?;
    let (progress, folder) = (transfer.progress.clone(), transfer.folder.clone());
    let ended = tokio::select! {
        biased;
        _ = stop => None,
        result = transfer.run() => Some(result),
        () = tell(shared, id, &progress) => None,
        () = keep(shared, &folder, &progress) => None,
    };
    // On a full disk the journal before this one stays valid.
    if let Err(error) = close(&folder, &progress).await {
        tracing::warn!(%error, "cannot save the progress of a download");
    }
    match ended {
        Some(result) => result?,
        None => return Ok(Outcome::Stopped),
    }
    shared.change(id, |entry| entry.set_state(State::Verifying));
    let destination = shared.destination(&record.model);
    blocking(move || {
        if destination.exists() {
            return Err(Error::Exists(record.model));
        }
        folder.finish(&record, &destination)
    })
    .await?;
    Ok(Outcome::Done)
}

/// Asks for the files.
async fn list(shared: &Shared, id: Uuid) -> Result<(Hub, Repository), Error> {
    // Closed never.
    let _listing = shared.listings.acquire().await.ok();
    let record = shared
        .read(id, |entry| entry.record.clone())
        .ok_or_else(gone)?;
    let connection = shared.connection.clone();
    let hub = blocking(move || connection.hub()).await?;
    let repository = at_commit(&hub, &record).await?;
    Ok((hub, repository))
}

fn gone() -> Error {
    Error::Unexpected("the download is gone".into())
}

/// Takes over the list of files, and finds out what is here of them.
async fn prepare(
    shared: &Shared,
    id: Uuid,
    hub: Hub,
    repository: Repository,
) -> Result<(Transfer, Record), Error> {
    let before = shared
        .read(id, |entry| entry.record.clone())
        .ok_or_else(gone)?;
    let commit = repository.commit.clone();
    let files = repository.into_needed()?;
    let folder = shared.folder(&before.model);
    let record = Record {
        commit: Some(commit.clone()),
        files,
        ..before.clone()
    };
    let progress = {
        let (folder, before, now) = (folder.clone(), before.files, record.files.clone());
        blocking(move || {
            folder.prepare(&before, &now)?;
            Progress::load(&folder, &now)
        })
        .await?
    };
    let progress = Arc::new(progress);
    shared.change(id, |entry| {
        entry.record.commit.clone_from(&record.commit);
        entry.record.files.clone_from(&record.files);
        entry.progress = Some(progress.clone());
    });
    shared.save(id).await?;
    let transfer = Transfer {
        hub,
        model: record.model.clone(),
        commit,
        folder,
        progress,
        connections: shared.connections.clone(),
        options: shared.options.clone(),
    };
    Ok((transfer, record))
}

/// Makes sure of the room for the files. From here on other downloads leave it to this one.
async fn begin(
    shared: &Shared,
    id: Uuid,
    transfer: &Transfer,
    record: &Record,
) -> Result<(), Error> {
    shared.change(id, |entry| {
        entry.speed = super::speed::Speed::default();
        entry.set_state(State::Downloading);
    });
    check_space(shared, id, &transfer.folder, record, &transfer.progress).await?;
    shared.save(id).await
}

/// The files at the commit that was begun with, for as long as the hub has it: branches move.
async fn at_commit(hub: &Hub, record: &Record) -> Result<Repository, Error> {
    let mut reference = Reference::parse(&record.model)?;
    if let Some(commit) = &record.commit {
        reference.revision = Some(commit.clone());
        match hub.repository(&reference, false).await {
            Err(Error::Revision { .. }) => {
                tracing::warn!(
                    model = record.model,
                    commit,
                    "the hub has another history now"
                );
            }
            listed => return listed,
        }
    }
    reference.revision.clone_from(&record.revision);
    hub.repository(&reference, false).await
}

async fn check_space(
    shared: &Shared,
    id: Uuid,
    folder: &Folder,
    record: &Record,
    progress: &Progress,
) -> Result<(), Error> {
    let (places, options, folder) = (
        shared.places.clone(),
        shared.options.clone(),
        folder.clone(),
    );
    let lacking = progress.remaining_bytes();
    let (total, promised) = (record.total_bytes(), shared.promised_bytes(id));
    blocking(move || space::check(&places, &options, &folder, lacking, total, promised)).await
}

/// Measures the speed and tells everybody how far it is.
async fn tell(shared: &Shared, id: Uuid, progress: &Progress) {
    let (mut at, mut received) = (Instant::now(), progress.received_bytes());
    loop {
        tokio::time::sleep(shared.options.tick).await;
        let (now, have) = (Instant::now(), progress.received_bytes());
        shared.change(id, |entry| {
            entry.speed.observe(have - received, now - at);
            entry.record.updated = jiff::Timestamp::now();
        });
        (at, received) = (now, have);
    }
}

/// Brings bytes onto the disk for certain every now and then.
async fn keep(shared: &Shared, folder: &Folder, progress: &Arc<Progress>) {
    loop {
        tokio::time::sleep(shared.options.checkpoint).await;
        let (folder, progress) = (folder.clone(), progress.clone());
        if let Err(error) = blocking(move || progress.checkpoint(&folder)).await {
            tracing::warn!(%error, "cannot save the progress of a download");
        }
    }
}

async fn close(folder: &Folder, progress: &Arc<Progress>) -> Result<(), Error> {
    let (folder, progress) = (folder.clone(), progress.clone());
    blocking(move || progress.close(&folder)).await
}
