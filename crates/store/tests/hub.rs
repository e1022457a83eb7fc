//! Pulls from a hub double: selection, resuming, checking, and what each refusal tells the user.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod hub_double;

use std::{fs, path::Path, sync::Arc};

use futures::StreamExt;
use hub_double::{File, HubDouble, Refusal};
use macmlx_inference::{ModelFiles, ModelFilesError, PullProgress, ScriptedBackend};
use macmlx_store::{
    hub::{Error, Event, Hub, Pulled, Request, pull},
    models::{Files, Library, State},
};

const WEIGHTS: usize = 300_000;

fn weights() -> Vec<u8> {
    // A safetensors file of one vector, with values that make every offset distinct.
    let header = format!(
        r#"{{"w.weight":{{"dtype":"U8","shape":[{WEIGHTS}],"data_offsets":[0,{WEIGHTS}]}}}}"#
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend((0..WEIGHTS).map(|i| (i * 31 % 251) as u8));
    bytes
}

fn files() -> Vec<File> {
    vec![
        File::small("config.json", br#"{"model_type": "llama"}"#),
        File::small("tokenizer.json", b"{}"),
        File::small("README.md", b"# Model"),
        File::small("pytorch_model.bin", b"not wanted"),
        File::large("model.safetensors", weights()),
    ]
}

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    fn models(&self) -> std::path::PathBuf {
        self.root.path().join("models")
    }

    fn downloads(&self) -> std::path::PathBuf {
        self.root.path().join("downloads")
    }

    async fn pull(
        &self,
        double: &HubDouble,
        token: Option<&str>,
    ) -> (Result<Pulled, Error>, Vec<Event>) {
        self.pull_named(double, token, "owner/model").await
    }

    async fn pull_named(
        &self,
        double: &HubDouble,
        token: Option<&str>,
        reference: &str,
    ) -> (Result<Pulled, Error>, Vec<Event>) {
        let hub = Hub::new(&double.url(), token).unwrap();
        let request = Request {
            reference: reference.into(),
            models: self.models(),
            downloads: self.downloads(),
        };
        let mut events = Vec::new();
        let result = pull(&hub, &request, &mut |event| events.push(event)).await;
        (result, events)
    }
}

fn assert_whole(folder: &Path) {
    assert_eq!(
        fs::read(folder.join("model.safetensors")).unwrap(),
        weights()
    );
}

#[tokio::test]
async fn a_model_arrives_with_the_files_it_needs() {
    let double = HubDouble::start(files()).await;
    let place = Place::new();
    let (pulled, events) = place.pull(&double, None).await;
    let pulled = pulled.unwrap();
    assert_eq!(pulled.id, "owner/model");
    assert_whole(&pulled.path);
    assert!(pulled.path.join("README.md").is_file());
    assert!(!pulled.path.join("pytorch_model.bin").exists());
    assert_eq!(fs::read_dir(place.downloads()).unwrap().count(), 0);
    assert!(matches!(
        &events[0],
        Event::Started {
            files: 4,
            resumed_bytes: 0,
            ..
        }
    ));
    let done = events.iter().rev().find_map(|event| match event {
        Event::Progress { done_bytes } => Some(*done_bytes),
        _ => None,
    });
    assert_eq!(done, Some(pulled.size_bytes));
    let entries = Library::new(place.models()).entries();
    assert!(
        matches!(entries[0].state, State::Complete(_)),
        "{entries:?}"
    );
}

#[tokio::test]
async fn a_lost_connection_is_resumed_within_the_pull() {
    let double = HubDouble::start(files()).await;
    double.drop_after(&[100_000, 50_000]);
    let place = Place::new();
    let (pulled, _) = place.pull(&double, None).await;
    assert_whole(&pulled.unwrap().path);
    let starts = double.range_starts();
    assert_eq!(starts[0], 0);
    assert!(
        starts.len() == 3 && starts[1] > 0 && starts[2] > starts[1],
        "{starts:?}"
    );
}

#[tokio::test]
async fn a_second_pull_goes_on_where_the_first_one_ended() {
    let double = HubDouble::start(files()).await;
    double.drop_after(&[100_000, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let place = Place::new();
    let (failed, _) = place.pull(&double, None).await;
    assert!(matches!(failed, Err(Error::Offline { .. })), "{failed:?}");
    assert!(!place.models().join("owner/model").exists());
    double.drop_after(&[]);
    let (pulled, events) = place.pull(&double, None).await;
    assert_whole(&pulled.unwrap().path);
    let Event::Started { resumed_bytes, .. } = events[0] else {
        panic!("{events:?}");
    };
    assert!(resumed_bytes > 50_000, "{resumed_bytes}");
}

#[tokio::test]
async fn a_hub_without_ranges_serves_too() {
    let double = HubDouble::start(files()).await;
    double.drop_after(&[100_000]);
    double.ignore_ranges();
    let place = Place::new();
    let (pulled, _) = place.pull(&double, None).await;
    assert_whole(&pulled.unwrap().path);
}

#[tokio::test]
async fn a_new_commit_discards_what_was_there() {
    let double = HubDouble::start(files()).await;
    double.drop_after(&[100_000, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let place = Place::new();
    place.pull(&double, None).await.0.unwrap_err();
    double.drop_after(&[]);
    double.set_commit("2222222222222222222222222222222222222222");
    let (pulled, events) = place.pull(&double, None).await;
    let pulled = pulled.unwrap();
    assert_eq!(pulled.commit, "2222222222222222222222222222222222222222");
    assert!(matches!(
        &events[0],
        Event::Started {
            resumed_bytes: 0,
            ..
        }
    ));
    assert_whole(&pulled.path);
}

#[tokio::test]
async fn damaged_bytes_are_noticed() {
    let mut files = files();
    files[4].sha256 = Some("0".repeat(64));
    let double = HubDouble::start(files).await;
    let place = Place::new();
    let (failed, _) = place.pull(&double, None).await;
    assert!(matches!(failed, Err(Error::Corrupt { .. })), "{failed:?}");
    assert!(!place.models().join("owner/model").exists());
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let double = HubDouble::start(files()).await;
    for (refusal, token, part) in [
        (Refusal::Gated, None, "accept its licence"),
        (Refusal::Gated, Some("hf_x"), "accept its licence"),
        (Refusal::Unauthorized, None, "set HF_TOKEN"),
        (Refusal::Unauthorized, Some("hf_x"), "make a new one"),
        (Refusal::NotFound, Some("hf_x"), "not on the hub"),
        (Refusal::RateLimited, None, "slow down"),
    ] {
        double.refuse(Some(refusal));
        let place = Place::new();
        let message = place.pull(&double, token).await.0.unwrap_err().to_string();
        assert!(message.contains(part), "{refusal:?}: {message}");
        assert!(!message.contains("hf_x"));
    }
}

#[tokio::test]
async fn the_token_is_sent() {
    let double = HubDouble::start(files()).await;
    let place = Place::new();
    place.pull(&double, Some("hf_secret")).await.0.unwrap();
    assert_eq!(double.authorization().as_deref(), Some("Bearer hf_secret"));
}

#[tokio::test]
async fn an_unreachable_hub_is_named() {
    let place = Place::new();
    let hub = Hub::new("http://127.0.0.1:1", None).unwrap();
    let request = Request {
        reference: "owner/model".into(),
        models: place.models(),
        downloads: place.downloads(),
    };
    let message = pull(&hub, &request, &mut |_| {})
        .await
        .unwrap_err()
        .to_string();
    assert!(message.contains("http://127.0.0.1:1"), "{message}");
}

#[tokio::test]
async fn a_gguf_repository_points_to_the_import() {
    let double = HubDouble::start(vec![
        File::small("README.md", b"#"),
        File::large("model-Q4_0.gguf", vec![0; 10]),
    ])
    .await;
    let place = Place::new();
    let message = place.pull(&double, None).await.0.unwrap_err().to_string();
    assert!(message.contains("macmlx import"), "{message}");
}

#[tokio::test]
async fn a_model_that_is_here_is_not_touched() {
    let double = HubDouble::start(files()).await;
    let place = Place::new();
    place.pull(&double, None).await.0.unwrap();
    let (again, _) = place.pull_named(&double, None, "owner/model@main").await;
    assert!(matches!(again, Err(Error::Exists(_))));
}

impl Place {
    /// What the dialects see of this place and a hub.
    fn files(&self, hub: &str) -> Files {
        Files::new(
            Arc::new(Library::new(self.models())),
            Hub::new(hub, None),
            self.downloads(),
            Arc::new(ScriptedBackend::default()),
        )
    }
}

#[tokio::test]
async fn progress_is_told_file_by_file_and_ends_with_the_model() {
    let files = files();
    let sha256 = files[4].sha256.clone();
    let double = HubDouble::start(files).await;
    double.drop_after(&[100_000]);
    let place = Place::new();
    let dialect = place.files(&double.url());
    let steps: Vec<_> = dialect.pull("owner/model".into()).collect().await;
    assert_eq!(steps.first(), Some(&Ok(PullProgress::Listing)));
    assert_eq!(
        steps.last(),
        Some(&Ok(PullProgress::Done {
            id: "owner/model".into()
        }))
    );
    let weights: Vec<(u64, u64)> = steps
        .iter()
        .filter_map(|step| match step {
            Ok(PullProgress::File {
                path,
                sha256: told,
                total_bytes,
                completed_bytes,
            }) if path == "model.safetensors" => {
                assert_eq!(told, &sha256);
                Some((*completed_bytes, *total_bytes))
            }
            _ => None,
        })
        .collect();
    let total = weights[0].1;
    assert_eq!(weights.first(), Some(&(0, total)));
    assert_eq!(weights.last(), Some(&(total, total)));
    assert!(weights.is_sorted(), "{weights:?}");
    assert!(steps.contains(&Ok(PullProgress::Verifying {
        path: "model.safetensors".into()
    })));
    let again: Vec<_> = dialect.pull("owner/model".into()).collect().await;
    assert_eq!(again.len(), 2, "it is here already: {again:?}");
}

#[tokio::test]
async fn what_a_hub_refuses_is_the_last_step() {
    let double = HubDouble::start(files()).await;
    double.refuse(Some(Refusal::Gated));
    let place = Place::new();
    let steps: Vec<_> = place
        .files(&double.url())
        .pull("owner/model".into())
        .collect()
        .await;
    assert!(
        matches!(steps.last(), Some(Err(ModelFilesError::NotOnHub(message))) if message.contains("licence")),
        "{steps:?}"
    );
    let steps: Vec<_> = place
        .files("http://127.0.0.1:1")
        .pull("owner/model".into())
        .collect()
        .await;
    assert!(matches!(steps.last(), Some(Err(ModelFilesError::Hub(_)))));
    let steps: Vec<_> = place
        .files(&double.url())
        .pull("a/b/c".into())
        .collect()
        .await;
    assert!(matches!(steps.last(), Some(Err(ModelFilesError::Name(_)))));
}

#[tokio::test]
async fn a_dropped_pull_goes_on_where_it_was() {
    let double = HubDouble::start(files()).await;
    let place = Place::new();
    let dialect = place.files(&double.url());
    let mut steps = dialect.pull("owner/model".into());
    while let Some(step) = steps.next().await {
        if matches!(step, Ok(PullProgress::File { path, .. }) if path == "model.safetensors") {
            break;
        }
    }
    drop(steps);
    assert!(!place.models().join("owner/model").exists());
    let steps: Vec<_> = dialect.pull("owner/model".into()).collect().await;
    assert!(matches!(steps.last(), Some(Ok(PullProgress::Done { .. }))));
}

#[tokio::test]
async fn deletions_stay_within_the_folder_and_copies_are_models() {
    let double = HubDouble::start(files()).await;
    let place = Place::new();
    place.pull(&double, None).await.0.unwrap();
    let dialect = place.files(&double.url());
    dialect.copy("model".into(), "mine".into()).await.unwrap();
    assert_eq!(
        dialect.delete("owner/model".into()).await,
        Ok("owner/model".into())
    );
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
