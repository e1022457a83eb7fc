//! Downloads that go well, and what those who wait for them are told.

use std::{fs, sync::Arc};

use futures::StreamExt;
use macmlx_inference::{DownloadState, ModelFiles, ModelFilesError, PullProgress, ScriptedBackend};
use macmlx_store::{
    downloads::{Change, Downloads, FileState, Job, Options, State},
    models::{self, Files, Library},
};
use macmlx_test_support::hub_double::{Behaviour, File, Repository};

use crate::place::{MODEL, Place, assert_whole, options, weights};

#[tokio::test]
async fn a_model_arrives_with_the_files_it_needs() {
    let place = Place::new().await;
    let downloads = place.open();
    let mut changes = downloads.subscribe();
    let job = place.pull(&downloads).await;
    assert_whole(&job, &place);
    assert_eq!(job.total_bytes, Some(job.done_bytes));
    assert_eq!(job.commit.as_deref(), Some(&*place.double.head(MODEL)));
    assert!(job.files.iter().all(|file| file.state == FileState::Done));
    let meta = fs::read_to_string(place.models().join(MODEL).join(".macmlx-meta.json")).unwrap();
    let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
    assert_eq!(meta["commitSHA"], place.double.head(MODEL));
    let entries = Library::new(place.models()).entries();
    assert!(
        matches!(entries[0].state, models::State::Complete(_)),
        "{entries:?}"
    );
    let mut states = Vec::new();
    while let Ok(Change::Job(job)) = changes.try_recv() {
        if states.last() != Some(&job.state) {
            states.push(job.state);
        }
    }
    assert_eq!(
        states[..3],
        [State::Queued, State::Listing, State::Downloading]
    );
    assert_eq!(states.last(), Some(&State::Done));
}

#[tokio::test]
async fn ranges_arrive_in_parallel_and_each_byte_once() {
    let place = Place::new().await;
    place.double.behave(Behaviour {
        bytes_per_second: Some(1_000_000),
        ..Behaviour::default()
    });
    let job = place.pull(&place.open()).await;
    assert_whole(&job, &place);
    assert_eq!(place.double.most_connections(), options().connections);
    let requests = place.double.requests();
    let ranges = requests.iter().filter(|request| request.is_elsewhere);
    assert_eq!(ranges.count(), weights().len().div_ceil(128 << 10));
    assert_eq!(place.sent_bytes(), weights().len());
}

#[tokio::test]
async fn an_encoder_comes_with_its_modules() {
    let mut repository = crate::place::repository();
    let mut files = repository.commits[0].files.clone();
    files.insert("modules.json".into(), File::small("[]"));
    files.insert("1_Pooling/config.json".into(), File::small("{}"));
    files.insert("2_Dense/model.safetensors".into(), File::large("dense"));
    files.insert("onnx/config.json".into(), File::small("{}"));
    repository.commits = vec![macmlx_test_support::hub_double::Commit::new(files)];
    let place = Place::with([repository]).await;
    let job = place.pull(&place.open()).await;
    assert_eq!(job.state, State::Done, "{job:?}");
    let model = place.models().join(MODEL);
    assert_eq!(
        fs::read(model.join("1_Pooling/config.json")).unwrap(),
        b"{}"
    );
    assert_eq!(
        fs::read(model.join("2_Dense/model.safetensors")).unwrap(),
        b"dense"
    );
    assert!(!model.join("onnx").exists());
}

#[tokio::test]
async fn a_file_without_bytes_is_a_file() {
    let mut repository = crate::place::repository();
    let mut files = repository.commits[0].files.clone();
    files.insert("NOTICE".into(), File::small(""));
    files.insert("LICENSE".into(), File::large(""));
    repository.commits = vec![macmlx_test_support::hub_double::Commit::new(files)];
    let place = Place::with([repository]).await;
    let job = place.pull(&place.open()).await;
    assert_eq!(job.state, State::Done, "{job:?}");
    for name in ["NOTICE", "LICENSE"] {
        assert_eq!(
            fs::read(place.models().join(MODEL).join(name)).unwrap(),
            b""
        );
    }
}

#[tokio::test]
async fn other_downloads_wait_for_their_turn() {
    let second = Repository {
        id: "owner/other".into(),
        ..crate::place::repository()
    };
    let place = Place::with([crate::place::repository(), second]).await;
    place.double.behave(Behaviour {
        bytes_per_second: Some(1_000_000),
        ..Behaviour::default()
    });
    let downloads = place.open_with(Options {
        jobs: 1,
        ..options()
    });
    let first = downloads.start(MODEL).await.unwrap().job;
    let second = downloads.start("owner/other").await.unwrap().job;
    crate::place::until(&downloads, first.id, |job| job.state == State::Downloading).await;
    let waits = |job: &Job| job.state == State::Queued && job.total_bytes.is_some();
    let waiting = crate::place::until(&downloads, second.id, waits).await;
    assert_eq!(waiting.done_bytes, 0, "its size is told before its turn");
    crate::place::rest(&downloads, first.id).await;
    assert_eq!(
        crate::place::rest(&downloads, second.id).await.state,
        State::Done
    );
    assert_eq!(downloads.list().len(), 2);
}

#[tokio::test]
async fn the_newest_finished_downloads_are_remembered() {
    let other = |id: &str| Repository {
        id: id.into(),
        ..crate::place::repository()
    };
    let place = Place::with(["a/1", "a/2", "a/3"].map(other)).await;
    let downloads = place.open_with(Options {
        remembered: 2,
        ..options()
    });
    for id in ["a/1", "a/2", "a/3"] {
        let job = downloads.start(id).await.unwrap().job;
        crate::place::rest(&downloads, job.id).await;
    }
    let mut changes = downloads.subscribe();
    while downloads.list().len() > 2 {
        changes.recv().await.unwrap();
    }
    let jobs = downloads.list().into_iter().map(|job| job.model);
    assert_eq!(jobs.collect::<Vec<_>>(), ["a/2", "a/3"]);
}

fn dialect(place: &Place) -> Files {
    dialect_of(place, place.open())
}

/// What the contract shows of these downloads.
fn dialect_of(place: &Place, downloads: Downloads) -> Files {
    Files::new(
        Arc::new(Library::new(place.models())),
        downloads,
        Arc::new(ScriptedBackend::default()),
    )
}

#[tokio::test]
async fn progress_is_told_file_by_file_and_ends_with_the_model() {
    let place = Place::new().await;
    place.double.behave(Behaviour {
        drop_after: vec![100_000],
        ..Behaviour::default()
    });
    let dialect = dialect(&place);
    let steps: Vec<_> = dialect.pull(MODEL.into()).collect().await;
    assert_eq!(steps.first(), Some(&Ok(PullProgress::Listing)));
    assert_eq!(
        steps.last(),
        Some(&Ok(PullProgress::Done { id: MODEL.into() }))
    );
    let told: Vec<(u64, u64)> = steps
        .iter()
        .filter_map(|step| match step {
            Ok(PullProgress::File {
                path,
                sha256,
                total_bytes,
                completed_bytes,
            }) if path == "model.safetensors" => {
                assert!(sha256.is_some());
                Some((*completed_bytes, *total_bytes))
            }
            _ => None,
        })
        .collect();
    let total = told[0].1;
    assert_eq!(told.first(), Some(&(0, total)));
    assert_eq!(told.last(), Some(&(total, total)));
    assert!(told.is_sorted(), "{told:?}");
    assert!(steps.contains(&Ok(PullProgress::Verifying {
        path: "model.safetensors".into()
    })));
    let again: Vec<_> = dialect.pull(MODEL.into()).collect().await;
    assert_eq!(again.len(), 2, "it is here already: {again:?}");
}

#[tokio::test]
async fn what_a_hub_refuses_is_the_last_step() {
    let place = Place::new().await;
    let last = async |reference: &str| {
        let steps: Vec<_> = dialect(&place).pull(reference.into()).collect().await;
        steps.last().unwrap().clone()
    };
    assert!(matches!(
        last("owner/unknown").await,
        Err(ModelFilesError::NotOnHub(message)) if message.contains("check the name")
    ));
    assert!(matches!(last("a/b/c").await, Err(ModelFilesError::Name(_))));
    place.double.behave(Behaviour {
        failing: 1000,
        ..Behaviour::default()
    });
    assert!(matches!(
        last(MODEL).await,
        Err(ModelFilesError::Hub(message)) if message.contains("503")
    ));
}

#[tokio::test]
async fn deletions_stay_within_the_folder_and_copies_are_models() {
    let place = Place::new().await;
    place.pull(&place.open()).await;
    let dialect = dialect(&place);
    dialect.copy("model".into(), "mine".into()).await.unwrap();
    assert_eq!(dialect.delete(MODEL.into()).await, Ok(MODEL.into()));
    assert!(place.models().join("mine/config.json").exists());
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("config.json"), "{}").unwrap();
    let outside = elsewhere.path().to_string_lossy().into_owned();
    assert!(matches!(
        dialect.delete(outside).await,
        Err(ModelFilesError::Name(_))
    ));
    assert!(elsewhere.path().join("config.json").exists());
    assert!(matches!(
        dialect.delete("gone".into()).await,
        Err(ModelFilesError::Model(_))
    ));
}

#[tokio::test]
async fn a_download_is_told_with_its_size_and_goes_on_by_itself() {
    let place = Place::new().await;
    place.double.behave(Behaviour {
        bytes_per_second: Some(400_000),
        ..Behaviour::default()
    });
    let downloads = place.open();
    let dialect = dialect_of(&place, downloads.clone());
    let begun = dialect.start_download(MODEL.into()).await.unwrap().unwrap();
    assert_eq!(begun.state, DownloadState::Running);
    let total_bytes = begun.total_bytes.unwrap();
    assert!(begun.completed_bytes < total_bytes, "{begun:?}");
    let again = format!("https://huggingface.co/{MODEL}");
    let same = dialect.start_download(again).await.unwrap().unwrap();
    assert_eq!(same.id, begun.id, "it is under way");
    let job = &downloads.list()[0];
    assert_eq!(job.id.to_string(), begun.id, "it is a row like any other");
    downloads.pause(job.id).await.unwrap();
    let paused = dialect.download(&begun.id).unwrap();
    assert_eq!(paused.state, DownloadState::Paused);
    place.double.behave(Behaviour::default());
    let resumed = dialect.start_download(MODEL.into()).await.unwrap().unwrap();
    assert_eq!(
        (&resumed.id, resumed.total_bytes),
        (&begun.id, Some(total_bytes))
    );
    crate::place::rest(&downloads, job.id).await;
    let done = dialect.download(&begun.id).unwrap();
    assert_eq!(
        (&done.state, done.completed_bytes, done.started_unix),
        (&DownloadState::Done, total_bytes, begun.started_unix)
    );
    assert!(done.updated_unix >= done.started_unix);
    assert_eq!(dialect.start_download(MODEL.into()).await, Ok(None));
}

#[tokio::test]
async fn a_download_that_cannot_begin_leaves_nothing_behind() {
    let place = Place::new().await;
    let downloads = place.open();
    let dialect = dialect_of(&place, downloads.clone());
    for (reference, is_name) in [("owner/unknown", false), ("a/b/c", true)] {
        let refused = dialect.start_download(reference.into()).await.unwrap_err();
        assert!(
            matches!(
                (&refused, is_name),
                (ModelFilesError::NotOnHub(_), false) | (ModelFilesError::Name(_), true)
            ),
            "{refused:?}"
        );
    }
    let mut changes = downloads.subscribe();
    while !downloads.list().is_empty() {
        changes.recv().await.unwrap();
    }
    assert_eq!(crate::place::names(&place.downloads()), [""; 0]);
    assert_eq!(dialect.download("owner/unknown"), None);
    assert_eq!(dialect.download(&uuid::Uuid::nil().to_string()), None);
}
