//! A downloading process that is killed at several moments loses little, and the model arrives.
//!
//! The process is this program itself: as `killed download ENDPOINT HOME` it downloads.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use libtest_mimic::{Arguments, Trial};
use macmlx_store::{
    downloads::{Downloads, Options, Places, State},
    hub::{Access, Connection},
};
use macmlx_test_support::hub_double::{Behaviour, File, HubDouble, Repository};
use tokio::process::{Child, Command};

const MODEL: &str = "owner/model";
const SIZE: usize = 12_000_000;
/// Of each of the four connections.
const BYTES_PER_SECOND: u64 = 1_000_000;
/// What a kill may cost: bytes of half a second, for a busy machine. Four of them are less than
/// what a download without a journal would fetch again.
const LOST_BYTES: usize = 2_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let [_, verb, endpoint, home] = arguments.as_slice()
        && verb == "download"
    {
        runtime.block_on(download(endpoint.clone(), Path::new(home)));
        return;
    }
    let trial = Trial::test("killed_at_several_moments", move || {
        runtime.block_on(killed_at_several_moments());
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit();
}

/// The process that is killed.
async fn download(endpoint: String, home: &Path) {
    let connection = Connection::new(move || Access {
        endpoint: endpoint.clone(),
        token: None,
    });
    let places = Places {
        models: home.join("models"),
        downloads: home.join("downloads"),
    };
    let options = Options {
        range_bytes: 1 << 20,
        checkpoint: Duration::from_millis(100),
        spare_bytes: 0,
        ..Options::default()
    };
    let downloads = Downloads::open(places, Arc::new(connection), options);
    if downloads.list().is_empty() {
        downloads.start(MODEL).await.unwrap();
    } else {
        // As a server does that finds what a killed one was at work on.
        downloads.resume_interrupted().await;
    }
    let id = downloads.list()[0].id;
    let mut changes = downloads.subscribe();
    while !downloads.job(id).unwrap().state.is_at_rest() {
        changes.recv().await.unwrap();
    }
    assert_eq!(downloads.job(id).unwrap().state, State::Done);
}

fn weights() -> Vec<u8> {
    let size = SIZE - 8 - 80;
    let mut header =
        format!(r#"{{"w":{{"dtype":"U8","shape":[{size}],"data_offsets":[0,{size}]}}}}"#);
    header.push_str(&" ".repeat(80 - header.len()));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend((0..size).map(|i| (i * 31 % 251 + i / 4093) as u8));
    bytes
}

fn spawn(double: &HubDouble, home: &Path) -> Child {
    let program: PathBuf = std::env::current_exe().unwrap();
    Command::new(program)
        .arg("download")
        .arg(double.url())
        .arg(home)
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

fn sent(double: &HubDouble) -> usize {
    let requests = double.requests();
    requests.iter().map(|request| request.sent).sum()
}

async fn killed_at_several_moments() {
    let weights = weights();
    let double = HubDouble::start([Repository::new(
        MODEL,
        [
            (
                "config.json",
                File::small(r#"{"model_type": "llama"}"#.as_bytes()),
            ),
            ("tokenizer.json", File::small("{}".as_bytes())),
            ("model.safetensors", File::large(weights.clone())),
        ],
    )])
    .await;
    double.behave(Behaviour {
        bytes_per_second: Some(BYTES_PER_SECOND),
        ..Behaviour::default()
    });
    let home = tempfile::tempdir().unwrap();
    // Early, in the middle, and when most is here.
    let moments = [1, 3_000_000, 6_000_000, 10_000_000];
    for (kills, moment) in moments.into_iter().enumerate() {
        let mut child = spawn(&double, home.path());
        let enough = moment + kills * LOST_BYTES / 8;
        while sent(&double) < enough {
            assert!(
                child.try_wait().unwrap().is_none(),
                "it ended before it was killed at {moment}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        child.kill().await.unwrap();
        assert!(!home.path().join("models/owner/model").exists());
    }
    double.behave(Behaviour::default());
    let ended = spawn(&double, home.path()).wait().await.unwrap();
    assert!(ended.success());
    let arrived = std::fs::read(home.path().join("models/owner/model/model.safetensors")).unwrap();
    assert!(arrived == weights, "the bytes differ");
    let most = SIZE + moments.len() * LOST_BYTES;
    assert!(
        sent(&double) < most,
        "{} of {SIZE} bytes sent",
        sent(&double)
    );
    let left = std::fs::read_dir(home.path().join("downloads")).unwrap();
    assert_eq!(left.count(), 0);
}
