//! What a process finds that an earlier one left.

use std::fs;

use macmlx_store::downloads::State;
use macmlx_test_support::hub_double::{Behaviour, Commit, File};

use crate::place::{MODEL, Place, assert_whole, begin, names, repository, rest, until, weights};

#[tokio::test]
async fn an_orderly_end_is_gone_on_with_at_the_next_start() {
    let place = Place::new().await;
    place.double.behave(Behaviour {
        bytes_per_second: Some(400_000),
        ..Behaviour::default()
    });
    let first = place.open();
    let job = first.start(MODEL).await.unwrap().job;
    until(&first, job.id, |job| job.done_bytes > 300_000).await;
    first.close().await;
    drop(first);

    place.double.behave(Behaviour::default());
    let second = place.open();
    let found = second.list();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].id, found[0].state), (job.id, State::Paused));
    assert!(found[0].done_bytes > 300_000);
    second.resume_interrupted().await;
    assert_whole(&rest(&second, job.id).await, &place);
    assert!(place.sent_bytes() < weights().len() + 4 * (64 << 10));
    assert_eq!(place.open().list(), []);
}

#[tokio::test]
async fn what_was_paused_stays_paused() {
    let place = Place::new().await;
    let paused = begin(&place, &place.open()).await;
    let downloads = place.open();
    downloads.resume_interrupted().await;
    let found = downloads.job(paused.id).unwrap();
    assert_eq!(found.state, State::Paused);
    assert_eq!(found.commit, paused.commit);
}

#[tokio::test]
async fn the_commit_stays_when_the_branch_moves() {
    let place = Place::new().await;
    let downloads = place.open();
    let paused = begin(&place, &downloads).await;
    let first = place.double.head(MODEL);
    place.double.commit(MODEL, other_commit());
    assert_ne!(place.double.head(MODEL), first);
    let job = place.pull(&downloads).await;
    assert_eq!(job.id, paused.id);
    assert_eq!(job.commit, Some(first));
    assert_whole(&job, &place);
}

#[tokio::test]
async fn another_history_keeps_only_the_files_that_are_the_same() {
    let place = Place::new().await;
    let downloads = place.open();
    begin(&place, &downloads).await;
    place.double.commit(MODEL, other_commit());
    place.double.rewrite_history(MODEL);
    let before = place.sent_bytes();
    let job = place.pull(&downloads).await;
    assert_eq!(job.commit, Some(place.double.head(MODEL)));
    assert_whole(&job, &place);
    assert_eq!(
        fs::read_to_string(place.models().join(MODEL).join("config.json")).unwrap(),
        OTHER_CONFIG
    );
    // The weights are the same in both.
    assert!(place.sent_bytes() - before < weights().len() - 250_000);
}

#[tokio::test]
async fn another_revision_is_another_commit() {
    let place = Place::new().await;
    let downloads = place.open();
    begin(&place, &downloads).await;
    place.double.commit(MODEL, other_commit());
    let head = place.double.head(MODEL);
    let started = downloads.start(&format!("{MODEL}@{head}")).await.unwrap();
    let job = rest(&downloads, started.job.id).await;
    assert_eq!(job.commit.as_deref(), Some(&*head));
    assert_eq!(job.revision.as_deref(), Some(&*head));
    assert_whole(&job, &place);
}

const OTHER_CONFIG: &str = r#"{"model_type": "qwen3"}"#;

fn other_commit() -> Commit {
    let mut files = repository().commits.remove(0).files;
    files.insert("config.json".into(), File::small(OTHER_CONFIG.as_bytes()));
    Commit::new(files)
}

#[tokio::test]
async fn damaged_state_is_kept_aside_and_the_model_arrives() {
    for damaged in ["job.json", "ranges.json"] {
        let place = Place::new().await;
        begin(&place, &place.open()).await;
        let folder = place.downloads().join("owner%2Fmodel");
        fs::write(folder.join(damaged), "{\"files\":").unwrap();
        let downloads = place.open();
        let job = place.pull(&downloads).await;
        assert_eq!(job.state, State::Done, "{damaged}: {job:?}");
        let bytes = fs::read(place.models().join(MODEL).join("model.safetensors")).unwrap();
        assert!(bytes == weights());
        let left = names(&folder);
        assert!(
            left.len() == 1 && left[0].starts_with(&format!("{damaged}.unreadable")),
            "{left:?}"
        );
    }
}

#[tokio::test]
async fn a_journal_that_says_too_much_is_not_believed() {
    let place = Place::new().await;
    begin(&place, &place.open()).await;
    let files = place.downloads().join("owner%2Fmodel/files");
    // As if the part had been truncated by a crash of the file system.
    let part = fs::OpenOptions::new()
        .write(true)
        .open(files.join("model.safetensors.part"))
        .unwrap();
    part.set_len(1000).unwrap();
    assert_whole(&place.pull(&place.open()).await, &place);
}
