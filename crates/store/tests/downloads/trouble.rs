//! Networks, hubs and disks that fail in the middle.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use macmlx_store::{
    downloads::{Options, State},
    hub::Code,
};
use macmlx_test_support::hub_double::{Behaviour, Commit};

use crate::place::{MODEL, Place, assert_whole, names, options, repository, weights};

async fn arrives_in_spite_of(behaviour: Behaviour) -> Place {
    let place = Place::new().await;
    place.double.behave(behaviour);
    let job = place.pull(&place.open()).await;
    assert_whole(&job, &place);
    place
}

#[tokio::test]
async fn broken_connections_are_gone_on_with() {
    let place = arrives_in_spite_of(Behaviour {
        drop_after: vec![100_000, 50_000, 0, 1, 70_000],
        ..Behaviour::default()
    })
    .await;
    // What arrived before a break is not asked for again.
    assert!(place.sent_bytes() < weights().len() + 5 * (64 << 10));
}

#[tokio::test]
async fn connections_that_end_early_are_gone_on_with() {
    arrives_in_spite_of(Behaviour {
        truncate_after: vec![100_000, 0, 5],
        ..Behaviour::default()
    })
    .await;
}

#[tokio::test]
async fn silent_connections_are_given_up() {
    arrives_in_spite_of(Behaviour {
        stall_after: vec![60_000, 0],
        ..Behaviour::default()
    })
    .await;
}

#[tokio::test]
async fn a_hub_without_ranges_serves_too() {
    let place = arrives_in_spite_of(Behaviour {
        ignores_ranges: true,
        drop_after: vec![0, 0, 0, 0, 400_000],
        ..Behaviour::default()
    })
    .await;
    // Twice at most, and what connections had sent when it turned out.
    assert!(place.sent_bytes() < 6 * weights().len());
}

#[tokio::test]
async fn addresses_that_expire_are_asked_for_again() {
    let place = arrives_in_spite_of(Behaviour {
        address_uses: Some(2),
        ..Behaviour::default()
    })
    .await;
    assert_eq!(place.sent_bytes(), weights().len());
}

#[tokio::test]
async fn a_hub_in_trouble_is_asked_again() {
    arrives_in_spite_of(Behaviour {
        failing: 3,
        failing_status: 503,
        ..Behaviour::default()
    })
    .await;
}

#[tokio::test]
async fn a_hub_that_asks_to_wait_is_waited_for() {
    let begun = Instant::now();
    arrives_in_spite_of(Behaviour {
        failing: 1,
        failing_status: 429,
        retry_after_seconds: Some(1),
        ..Behaviour::default()
    })
    .await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_told() {
    let place = Place::new().await;
    place.double.behave(Behaviour {
        failing: 100,
        failing_status: 429,
        retry_after_seconds: Some(7200),
        ..Behaviour::default()
    });
    let downloads = place.open();
    let job = place.pull(&downloads).await;
    let error = job.error.unwrap();
    assert_eq!(error.code, Code::RateLimited);
    assert!(error.message.contains("7200 s"), "{}", error.message);
    place.double.behave(Behaviour::default());
    assert_whole(&place.pull(&downloads).await, &place);
}

#[tokio::test]
async fn a_network_that_is_gone_is_told_and_nothing_is_lost() {
    let place = Place::new().await;
    place.double.behave(Behaviour {
        drop_after: [vec![100_000; 4], vec![0; 100]].concat(),
        ..Behaviour::default()
    });
    let downloads = place.open();
    let job = place.pull(&downloads).await;
    assert_eq!(job.state, State::Failed);
    assert_eq!(job.error.unwrap().code, Code::Offline);
    assert!(job.done_bytes > 300_000, "{}", job.done_bytes);
    assert!(!place.models().join(MODEL).exists());
    let before = place.sent_bytes();
    place.double.behave(Behaviour::default());
    assert_whole(&place.pull(&downloads).await, &place);
    assert!(place.sent_bytes() - before < weights().len() - 300_000);
}

#[tokio::test]
async fn a_file_that_arrives_wrongly_is_fetched_once_more() {
    let place = arrives_in_spite_of(Behaviour {
        corrupting: 1,
        ..Behaviour::default()
    })
    .await;
    assert_eq!(place.sent_bytes(), 2 * weights().len());
}

#[tokio::test]
async fn a_file_that_stays_wrong_is_told_and_only_it_is_discarded() {
    let mut repository = repository();
    let mut files = repository.commits[0].files.clone();
    files.get_mut("model.safetensors").unwrap().sha256 = Some("0".repeat(64));
    repository.commits = vec![Commit::new(files)];
    let place = Place::with([repository]).await;
    let downloads = place.open();
    let job = place.pull(&downloads).await;
    let error = job.error.clone().unwrap();
    assert_eq!(error.code, Code::Corrupt);
    assert!(error.message.contains("model.safetensors"));
    assert!(!place.models().join(MODEL).exists());
    let folder = place.downloads().join("owner%2Fmodel/files");
    assert_eq!(
        names(&folder),
        ["README.md", "config.json", "tokenizer.json"]
    );
    // The hub is put right.
    place.double.commit(MODEL, repository_commit());
    downloads.cancel(job.id).await.unwrap();
    assert_whole(&place.pull(&downloads).await, &place);
}

fn repository_commit() -> Commit {
    repository().commits.remove(0)
}

#[tokio::test]
async fn small_files_are_checked_as_well() {
    let place = Place::new().await;
    place.double.behave(Behaviour {
        corrupt_path: Some("tokenizer.json".into()),
        ..Behaviour::default()
    });
    let job = place.pull(&place.open()).await;
    assert_eq!(job.error.unwrap().code, Code::Corrupt);
}

/// Bytes that fit on the disk of the next test.
static ROOM: AtomicU64 = AtomicU64::new(300_000);

fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let taken = ROOM.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |room| {
        room.checked_sub(bytes.len() as u64)
    });
    if taken.is_err() {
        return Err(io::ErrorKind::StorageFull.into());
    }
    file.write_all_at(bytes, offset)
}

#[tokio::test]
async fn a_disk_that_fills_up_is_told_and_gone_on_with() {
    let place = Place::new().await;
    let downloads = place.open_with(Options {
        write_at,
        connections: 1,
        ..options()
    });
    let job = place.pull(&downloads).await;
    let error = job.error.unwrap();
    assert_eq!(error.code, Code::DiskFull);
    assert!(
        error.message.contains("free some space"),
        "{}",
        error.message
    );
    assert!(job.done_bytes > 100_000 && job.done_bytes <= 300_000);
    let before = place.sent_bytes();
    ROOM.store(u64::MAX, Ordering::SeqCst);
    assert_whole(&place.pull(&downloads).await, &place);
    assert!(place.sent_bytes() - before <= weights().len() - 100_000);
}

#[tokio::test]
async fn a_download_that_cannot_fit_is_refused_before_its_first_byte() {
    let place = Place::new().await;
    let downloads = place.open_with(Options {
        spare_bytes: u64::MAX / 2,
        ..options()
    });
    let job = place.pull(&downloads).await;
    let error = job.error.unwrap();
    assert_eq!(error.code, Code::DiskFull);
    assert!(
        error.message.contains("bytes are needed"),
        "{}",
        error.message
    );
    assert_eq!(place.sent_bytes(), 0);
    assert_eq!(fs::read_dir(place.downloads()).unwrap().count(), 1);
}
