//! A running application.

use std::{collections::BTreeMap, fs, path::Path};

use axum::{
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use macmlx_host::{App, AppOptions, DoorOptions, Host, OpenDoor, Owner};
use macmlx_settings::Environment;
use serde_json::Value;

/// Asks this machine only.
pub(crate) fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

pub(crate) struct Running {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) app: App,
}

/// A port that is free.
pub(crate) fn any_port() -> DoorOptions {
    DoorOptions {
        port: Some(0),
        ..DoorOptions::default()
    }
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::start_as(Owner::Gui).await
    }

    pub(crate) async fn start_as(owner: Owner) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let app = Self::start_in(folder.path(), owner).await.unwrap();
        Self { folder, app }
    }

    pub(crate) async fn start_in(folder: &Path, owner: Owner) -> anyhow::Result<App> {
        let host = Host::open(Environment {
            user_home: Some(folder.into()),
            macmlx_home: Some(folder.join("data")),
            ..Environment::default()
        })?;
        App::start(host, AppOptions::default(), owner).await
    }

    pub(crate) async fn open(&self) -> OpenDoor {
        self.app.open_door(any_port()).await.unwrap()
    }

    /// Sends a request through the in-process door.
    pub(crate) async fn call(&self, method: &str, path: &str, body: &str) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(path);
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.app.call(request).await;
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 22).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Every file of the home that is state, with what is in it.
    pub(crate) fn state(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        read_all(&self.folder.path().join("data"), &mut files);
        files
    }
}

fn read_all(folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, files);
        } else {
            let contents = fs::read(&path).unwrap();
            files.insert(path.display().to_string(), contents);
        }
    }
}
