//! `/x/hub` and `/x/downloads`, against a hub double.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::to_bytes, http::StatusCode};
use futures::{Stream, StreamExt};
use macmlx_control::{
    downloads,
    events::Event,
    guard,
    hub::{self, HubSources},
};
use macmlx_store::{
    downloads::{Downloads, Options, Places},
    hub::{Access, Connection},
};
use macmlx_test_support::hub_double::{Behaviour, File, HubDouble, Refusal, Repository};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Running, TOKEN, request};

/// A home, a hub, and the routes between them.
struct Place {
    running: Running,
    double: HubDouble,
    router: Router,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn repository(id: &str) -> Repository {
    let config = json!({
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
        "max_position_embeddings": 2048,
    });
    let header = r#"{"a.weight":{"dtype":"BF16","shape":[200000],"data_offsets":[0,400000]}}"#;
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.bytes());
    weights.extend((0..400_000).map(|i| (i % 251) as u8));
    Repository::new(
        id,
        [
            ("config.json", File::small(config.to_string())),
            ("tokenizer.json", File::small("{}")),
            ("README.md", File::small("---\nlicense: mit\n---\n# Tiny\n")),
            ("model.safetensors", File::large(weights)),
            ("notes.pdf", File::small("x")),
        ],
    )
}

impl Place {
    async fn new() -> Self {
        let mut gated = repository("someone/gated");
        gated.is_gated = true;
        gated.downloads = 0;
        let encoders = [
            ("zoo/embedder", "sentence-similarity"),
            ("zoo/reranker", "text-ranking"),
        ]
        .map(|(id, pipeline_tag)| Repository {
            downloads: 0,
            pipeline_tag,
            ..repository(id)
        });
        let all = [repository("mlx-community/tiny"), gated];
        let double = HubDouble::start(all.into_iter().chain(encoders)).await;
        let running = Running::new();
        let url = double.url();
        let connection = Arc::new(Connection::new(move || Access {
            endpoint: url.clone(),
            token: None,
        }));
        let places = Places {
            models: running.folder.path().join("models"),
            downloads: running.home.downloads(),
        };
        let options = Options {
            tick: Duration::from_millis(10),
            spare_bytes: 0,
            ..Options::default()
        };
        let jobs = Downloads::open(places, connection.clone(), options);
        let task = tokio::spawn(downloads::announce(jobs.clone(), running.events.clone()));
        let sources = HubSources {
            connection,
            models: running.models.clone(),
        };
        let routes = hub::routes()
            .with_state(Arc::new(sources))
            .merge(downloads::routes().with_state(jobs));
        Self {
            router: guard(TOKEN.into(), routes),
            running,
            double,
            task,
        }
    }

    async fn call(&self, method: &str, path: &str, body: &str) -> (StatusCode, Value) {
        let token = [("authorization", "Bearer 0123456789abcdef")];
        let request = request(method, path, &token, body);
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, "").await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    fn slow(&self) {
        self.double.behave(Behaviour {
            bytes_per_second: Some(100_000),
            ..Behaviour::default()
        });
    }
}

fn code(answer: &(StatusCode, Value)) -> (u16, &str) {
    (
        answer.0.as_u16(),
        answer.1["error"]["code"].as_str().unwrap(),
    )
}

#[tokio::test]
async fn the_hub_is_searched_for_the_community_first() {
    let place = Place::new().await;
    place.running.put_model("mlx-community/tiny", "llama");
    let found = place
        .get("/x/hub/models?search=tiny&sort=likes&limit=5")
        .await;
    let models = found["models"].as_array().unwrap();
    assert_eq!(models.len(), 1);
    let model = &models[0];
    assert_eq!(model["id"], "mlx-community/tiny");
    assert_eq!(model["author"], "mlx-community");
    assert_eq!(model["name"], "tiny");
    assert_eq!(model["is_local"], true);
    assert_eq!(model["is_gated"], false);
    assert!(found["next_cursor"].is_null());

    let page = place.get("/x/hub/models?author=*&limit=1").await;
    assert_eq!(page["models"][0]["id"], "mlx-community/tiny");
    let cursor = page["next_cursor"].as_str().unwrap();
    let page = place
        .get(&format!("/x/hub/models?author=*&limit=1&cursor={cursor}"))
        .await;
    assert_eq!(page["models"][0]["id"], "someone/gated");
    assert_eq!(page["models"][0]["is_gated"], true);

    let page = place.get("/x/hub/models?author=zoo").await;
    let is = |id: &str, field: &str| {
        let models = page["models"].as_array().unwrap();
        let model = models.iter().find(|model| model["id"] == id).unwrap();
        model[field].as_bool().unwrap()
    };
    for (id, is_embedder) in [("zoo/embedder", true), ("zoo/reranker", false)] {
        assert_eq!(is(id, "is_embedder"), is_embedder, "{id}");
        assert_eq!(is(id, "is_reranker"), !is_embedder, "{id}");
    }

    for wrong in ["limit=0", "limit=101", "limit=x", "sort=size"] {
        let answer = place
            .call("GET", &format!("/x/hub/models?{wrong}"), "")
            .await;
        assert_eq!(code(&answer), (400, "invalid_request"), "{wrong}");
    }
}

#[tokio::test]
async fn a_model_is_shown_before_its_download() {
    let place = Place::new().await;
    let detail = place.get("/x/hub/models/mlx-community%2Ftiny").await;
    assert_eq!(detail["commit"], place.double.head("mlx-community/tiny"));
    assert_eq!(detail["license"], "mit");
    assert_eq!(detail["readme"], "# Tiny\n");
    assert_eq!(detail["model_type"], "llama");
    assert_eq!(detail["is_supported"], true);
    assert_eq!(detail["context_length"], 2048);
    assert_eq!(detail["fit"]["verdict"], "fits");
    assert!(detail["disk_free_bytes"].as_u64().unwrap() > 0);
    let files = detail["files"].as_array().unwrap();
    let needed: u64 = files
        .iter()
        .filter(|file| file["is_needed"] == true)
        .map(|file| file["size_bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(detail["download_bytes"], needed);
    assert!(files.iter().any(|file| file["is_needed"] == false));

    // What is for others only is left out, the rest is shown.
    let gated = place.get("/x/hub/models/someone%2Fgated").await;
    assert!(gated["fit"].is_null() && gated["readme"].is_null());
    assert_eq!(gated["is_supported"], true);
}

#[tokio::test]
async fn what_the_hub_refuses_has_a_code() {
    let place = Place::new().await;
    let path = "/x/hub/models/mlx-community%2Ftiny";
    let answer = place.call("GET", &format!("{path}?revision=v9"), "").await;
    assert_eq!(code(&answer), (404, "hub_model_not_found"));
    let answer = place.call("GET", "/x/hub/models/a%2Fb%2Fc", "").await;
    assert_eq!(code(&answer), (400, "invalid_request"));
    for (refusal, expected) in [
        (Refusal::Gated, (409, "gated")),
        (Refusal::Unauthorized, (409, "unauthorized")),
        (Refusal::NotFound, (404, "hub_model_not_found")),
        (Refusal::RateLimited, (429, "rate_limited")),
        (Refusal::Unavailable, (502, "offline")),
    ] {
        place.double.behave(Behaviour {
            refuse: Some(refusal),
            retry_after_seconds: Some(60),
            ..Behaviour::default()
        });
        let answer = place.call("GET", path, "").await;
        assert_eq!(code(&answer), expected);
    }
}

/// The next change of a download that looks like this.
async fn told(events: &mut (impl Stream<Item = Event> + Unpin), looks: impl Fn(&Value) -> bool) {
    let waiting =
        async { while !looks(&serde_json::to_value(events.next().await.unwrap()).unwrap()) {} };
    tokio::time::timeout(Duration::from_mins(1), waiting)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_download_is_started_paused_resumed_and_told_of() {
    let place = Place::new().await;
    place.slow();
    let mut events = Box::pin(place.running.events.subscribe());
    let wanted = r#"{"model": "mlx-community/tiny", "revision": "main"}"#;
    let (status, job) = place.call("POST", "/x/downloads", wanted).await;
    assert_eq!(status, StatusCode::CREATED, "{job}");
    assert_eq!(job["model"], "mlx-community/tiny");
    assert_eq!(job["revision"], "main");
    let id = job["id"].as_str().unwrap();
    let path = format!("/x/downloads/{id}");
    told(&mut events, |event| {
        event["type"] == "download" && event["job"]["done_bytes"].as_u64() > Some(10_000)
    })
    .await;
    let (status, again) = place.call("POST", "/x/downloads", wanted).await;
    assert_eq!((status, &again["id"]), (StatusCode::OK, &job["id"]));

    let (status, paused) = place.call("POST", &format!("{path}/pause"), "").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(paused["state"], "paused");
    assert!(paused["eta_seconds"].is_null() && paused["error"].is_null());
    assert_eq!(place.get("/x/downloads").await["jobs"][0], paused);
    let file = &paused["files"][3];
    assert_eq!(file["path"], "model.safetensors");
    assert_eq!(file["state"], "waiting");

    place.double.behave(Behaviour::default());
    let (status, _) = place.call("POST", &format!("{path}/resume"), "").await;
    assert_eq!(status, StatusCode::OK);
    told(&mut events, |event| event["job"]["state"] == "done").await;
    told(&mut events, |event| event["type"] == "models_changed").await;
    let done = place.get(&path).await;
    assert_eq!(done["done_bytes"], done["total_bytes"]);
    let answer = place.call("POST", "/x/downloads", wanted).await;
    assert_eq!(code(&answer), (409, "exists"));
    let answer = place.call("POST", &format!("{path}/resume"), "").await;
    assert_eq!(code(&answer), (409, "wrong_state"));

    let (status, _) = place.call("DELETE", &path, "").await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    told(&mut events, |event| {
        event["type"] == "download_removed" && event["id"] == id
    })
    .await;
    let model = place
        .running
        .folder
        .path()
        .join("models/mlx-community/tiny");
    assert!(model.join("model.safetensors").exists());
    assert_eq!(place.get("/x/downloads").await["jobs"], json!([]));
}

#[tokio::test]
async fn a_failed_download_says_why_in_its_row() {
    let place = Place::new().await;
    let mut events = Box::pin(place.running.events.subscribe());
    let wanted = r#"{"model": "someone/gated"}"#;
    place.call("POST", "/x/downloads", wanted).await;
    told(&mut events, |event| event["job"]["state"] == "failed").await;
    let jobs = place.get("/x/downloads").await;
    assert_eq!(jobs["jobs"][0]["error"]["code"], "gated");
}

#[tokio::test]
async fn downloads_that_are_not_there_and_names_that_are_none() {
    let place = Place::new().await;
    let unknown = "/x/downloads/00000000-0000-0000-0000-000000000000";
    for (method, path) in [
        ("GET", unknown.to_owned()),
        ("GET", "/x/downloads/nonsense".to_owned()),
        ("DELETE", unknown.to_owned()),
        ("POST", format!("{unknown}/pause")),
        ("POST", format!("{unknown}/resume")),
    ] {
        let answer = place.call(method, &path, "").await;
        assert_eq!(code(&answer), (404, "download_not_found"), "{path}");
    }
    for wrong in [r#"{"model": "a/b/c"}"#, r#"{"model": 1}"#, "{}"] {
        let answer = place.call("POST", "/x/downloads", wrong).await;
        assert_eq!(code(&answer), (400, "invalid_request"), "{wrong}");
    }
}
