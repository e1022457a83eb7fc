//! A place to download to, and a model to download.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use macmlx_store::{
    downloads::{Change, Downloads, Job, Options, Places, State},
    hub::{Access, Connection, Patience},
};
use macmlx_test_support::hub_double::{Behaviour, File, HubDouble, Repository};
use parking_lot::Mutex;
use uuid::Uuid;

pub(crate) const MODEL: &str = "owner/model";
const VALUES: usize = 1_000_000;

/// A safetensors file of one vector, with values that make offsets distinct.
pub(crate) fn weights() -> Vec<u8> {
    let header = format!(
        r#"{{"w.weight":{{"dtype":"U8","shape":[{VALUES}],"data_offsets":[0,{VALUES}]}}}}"#
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend((0..VALUES).map(|i| (i * 31 % 251 + i / 4093) as u8));
    bytes
}

pub(crate) fn repository() -> Repository {
    Repository::new(
        MODEL,
        [
            (
                "config.json",
                File::small(r#"{"model_type": "llama"}"#.as_bytes()),
            ),
            ("tokenizer.json", File::small("{}".as_bytes())),
            ("README.md", File::small("# Model".as_bytes())),
            ("pytorch_model.bin", File::small("not wanted".as_bytes())),
            ("model.safetensors", File::large(weights())),
        ],
    )
}

/// Quick and in small pieces.
pub(crate) fn options() -> Options {
    Options {
        range_bytes: 128 << 10,
        tick: Duration::from_millis(10),
        checkpoint: Duration::from_millis(20),
        stall: Duration::from_millis(400),
        spare_bytes: 0,
        patience: Patience {
            attempts: 4,
            first_pause: Duration::from_millis(10),
            longest_wait: Duration::from_secs(5),
        },
        ..Options::default()
    }
}

/// A home and a hub.
pub(crate) struct Place {
    root: tempfile::TempDir,
    pub(crate) double: HubDouble,
    pub(crate) token: Arc<Mutex<Option<String>>>,
}

impl Place {
    pub(crate) async fn new() -> Self {
        Self::with([repository()]).await
    }

    pub(crate) async fn with(repositories: impl IntoIterator<Item = Repository>) -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            double: HubDouble::start(repositories).await,
            token: Arc::default(),
        }
    }

    pub(crate) fn models(&self) -> PathBuf {
        self.root.path().join("models")
    }

    pub(crate) fn downloads(&self) -> PathBuf {
        self.root.path().join("downloads")
    }

    pub(crate) fn open(&self) -> Downloads {
        self.open_with(options())
    }

    pub(crate) fn open_with(&self, options: Options) -> Downloads {
        let (endpoint, token) = (self.double.url(), self.token.clone());
        let connection = Connection::new(move || Access {
            endpoint: endpoint.clone(),
            token: token.lock().clone(),
        });
        let places = Places {
            models: self.models(),
            downloads: self.downloads(),
        };
        Downloads::open(places, Arc::new(connection), options)
    }

    /// Downloads the model to whatever end.
    pub(crate) async fn pull(&self, downloads: &Downloads) -> Job {
        let job = downloads.start(MODEL).await.unwrap().job;
        rest(downloads, job.id).await
    }

    /// Bytes of large files that the double sent.
    pub(crate) fn sent_bytes(&self) -> usize {
        self.double
            .requests()
            .iter()
            .filter(|request| request.is_elsewhere)
            .map(|request| request.sent)
            .sum()
    }
}

/// Waits until a download rests.
pub(crate) async fn rest(downloads: &Downloads, id: Uuid) -> Job {
    until(downloads, id, |job| job.state.is_at_rest()).await
}

/// Waits until a download looks like something.
pub(crate) async fn until(
    downloads: &Downloads,
    id: Uuid,
    mut looks: impl FnMut(&Job) -> bool,
) -> Job {
    let mut changes = downloads.subscribe();
    let waiting = async {
        let mut job = downloads.job(id).unwrap();
        while !looks(&job) {
            assert!(!job.state.is_at_rest(), "it came to rest: {job:?}");
            job = match changes.recv().await.unwrap() {
                Change::Job(next) if next.id == id => *next,
                _ => continue,
            };
        }
        job
    };
    tokio::time::timeout(Duration::from_mins(1), waiting)
        .await
        .unwrap()
}

/// Starts slowly and pauses in the middle.
pub(crate) async fn begin(place: &Place, downloads: &Downloads) -> Job {
    place.double.behave(Behaviour {
        bytes_per_second: Some(400_000),
        ..Behaviour::default()
    });
    let job = downloads.start(MODEL).await.unwrap().job;
    until(downloads, job.id, |job| job.done_bytes > 300_000).await;
    let paused = downloads.pause(job.id).await.unwrap();
    assert_eq!(paused.state, State::Paused);
    assert!(paused.done_bytes > 300_000 && paused.done_bytes < paused.total_bytes.unwrap());
    place.double.behave(Behaviour::default());
    paused
}

pub(crate) fn assert_whole(job: &Job, place: &Place) {
    assert_eq!(job.state, State::Done, "{job:?}");
    let folder = place.models().join(MODEL);
    assert_eq!(
        names(&folder),
        [
            ".macmlx-meta.json",
            "README.md",
            "config.json",
            "model.safetensors",
            "tokenizer.json"
        ]
    );
    assert!(
        fs::read(folder.join("model.safetensors")).unwrap() == weights(),
        "the bytes differ"
    );
    assert_eq!(names(&place.downloads()), [""; 0]);
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
