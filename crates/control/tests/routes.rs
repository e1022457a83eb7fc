//! Control routes: closed without the token, and what they do with it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use macmlx_control::{
    Activity, Control,
    door::{DoorState, Openness},
    models::Models,
    router,
    status::Sources,
};
use macmlx_inference::{ScriptedBackend, ScriptedCatalog};
use serde_json::Value;
use tower::ServiceExt;

const TOKEN: &str = "0123456789abcdef";

/// A door that does what it is told.
struct Door(AtomicBool);

impl macmlx_control::door::Door for Door {
    fn state(&self) -> DoorState {
        let is_open = self.0.load(Ordering::SeqCst);
        DoorState {
            state: if is_open {
                Openness::Open
            } else {
                Openness::Closed
            },
            url: is_open.then(|| "http://127.0.0.1:8000".into()),
            address: is_open.then(|| "127.0.0.1:8000".into()),
            wanted_port: 8000,
            needs_api_key: false,
            error: None,
        }
    }

    fn open(&self) -> BoxFuture<'_, Result<DoorState, String>> {
        self.0.store(true, Ordering::SeqCst);
        ready(Ok(self.state())).boxed()
    }

    fn close(&self) -> BoxFuture<'_, DoorState> {
        self.0.store(false, Ordering::SeqCst);
        ready(self.state()).boxed()
    }
}

fn routes() -> (Router, Arc<AtomicBool>) {
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = stopped.clone();
    let backend = Arc::new(ScriptedBackend::default());
    let catalog = Arc::new(ScriptedCatalog::default());
    let router = router(Control {
        token: TOKEN.into(),
        status: Arc::new(Sources {
            backend: backend.clone(),
            catalog: catalog.clone(),
            activity: Arc::new(Activity::default()),
            models: "/models".into(),
            started: Instant::now(),
            shut_down: Arc::new(move || flag.store(true, Ordering::SeqCst)),
        }),
        door: Arc::new(Door(AtomicBool::new(false))),
        events: Arc::default(),
        models: Arc::new(Models { backend, catalog }),
    });
    (router, stopped)
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

async fn call(request: Request<Body>) -> (StatusCode, Value, bool) {
    let (router, stopped) = routes();
    let response = router.oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let json = serde_json::from_slice(&body).unwrap();
    (status, json, stopped.load(Ordering::SeqCst))
}

fn authorized() -> (&'static str, &'static str) {
    ("authorization", "Bearer 0123456789abcdef")
}

#[tokio::test]
async fn every_route_is_closed_without_the_token() {
    for (method, path) in [
        ("GET", "/x/status"),
        ("POST", "/x/models/load"),
        ("POST", "/x/models/unload"),
        ("POST", "/x/shutdown"),
    ] {
        for headers in [
            &[][..],
            &[("authorization", "Bearer wrong")][..],
            &[("authorization", TOKEN)][..],
            &[("x-control-token", "")][..],
        ] {
            let (status, body, stopped) = call(request(method, path, headers, "{}")).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(body["error"]["code"], "invalid_control_token");
            assert!(!stopped);
        }
    }
}

#[tokio::test]
async fn a_page_of_another_site_is_refused_even_with_the_token() {
    let headers = [
        authorized(),
        ("origin", "https://evil.example"),
        ("host", "127.0.0.1:8000"),
    ];
    let (status, _, stopped) = call(request("POST", "/x/shutdown", &headers, "")).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(!stopped);
}

#[tokio::test]
async fn status_has_the_fields_of_earlier_versions() {
    let (status, body, _) = call(request("GET", "/x/status", &[authorized()], "")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["status"], "idle");
    assert_eq!(body["loaded_model"], Value::Null);
    assert!(body["memory_used_gb"].as_f64().unwrap() > 0.0);
    assert!(body["memory_total_gb"].as_f64().unwrap() > body["memory_used_gb"].as_f64().unwrap());
    assert_eq!(body["requests_total"], 0);
    assert_eq!(body["tokens_generated_total"], 0);
}

#[tokio::test]
async fn models_are_loaded_by_either_name() {
    for body in [r#"{"model": "m"}"#, r#"{"model_path": "m"}"#] {
        let headers = [("x-control-token", TOKEN)];
        let (status, reply, _) = call(request("POST", "/x/models/load", &headers, body)).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(reply["model"], "m");
        assert_eq!(reply["status"], "loaded");
    }
    let (status, reply, _) = call(request(
        "POST",
        "/x/models/load",
        &[authorized()],
        "nonsense",
    ))
    .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(reply["error"]["code"], "invalid_request");
}

#[tokio::test]
async fn unloading_nothing_is_fine() {
    for body in ["", r#"{"model": "m"}"#] {
        let (status, reply, _) =
            call(request("POST", "/x/models/unload", &[authorized()], body)).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(reply["status"], "unloaded");
    }
}

#[tokio::test]
async fn shutdown_begins_at_once_and_says_so() {
    let (status, _, stopped) = call(request("POST", "/x/shutdown", &[authorized()], "")).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert!(stopped);
}
