//! Keys, hosts and origins.

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::IntoResponse,
    routing::get,
};
use macmlx_inference::ScriptedBackend;
use macmlx_server::{ApiKey, ApiKeySource, BindError, IfBusy, Options, Visitors, bind};
use parking_lot::Mutex;
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;

use crate::support::{start, start_with_control};

#[tokio::test]
async fn a_key_opens_client_routes_however_it_is_sent() {
    let options = Options {
        api_keys: vec![ApiKey::new("first"), ApiKey::new("second")],
        ..Options::default()
    };
    let server = start(ScriptedBackend::default(), options).await;
    for (header, value, status) in [
        ("authorization", "Bearer first", 200),
        ("authorization", "bearer second", 200),
        ("x-api-key", "first", 200),
        ("x-api-key", "third", 401),
        ("authorization", "Bearer ", 401),
        ("authorization", "first", 200),
        ("authorization", "third", 401),
        ("authorization", "Basic first", 401),
        ("api-key", "second", 200),
        ("api-key", "third", 401),
        ("authorization", "", 401),
        ("x-other", "first", 401),
    ] {
        let response = Client::new()
            .get(server.at("/v1/models"))
            .header(header, value)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), status, "{header}: {value}");
        if status == 401 {
            let error: Value = response.json().await.unwrap();
            assert_eq!(error["error"]["code"], "invalid_api_key");
        }
    }
    let health = Client::new()
        .get(server.at("/health"))
        .send()
        .await
        .unwrap();
    assert_eq!(health.status(), StatusCode::OK);
}

/// Keys that change while the server runs.
#[derive(Debug, Default)]
struct Changing(Mutex<Vec<ApiKey>>);

impl Changing {
    fn set(&self, keys: &[&str]) {
        *self.0.lock() = keys.iter().copied().map(ApiKey::new).collect();
    }
}

impl ApiKeySource for Changing {
    fn api_keys(&self) -> Vec<ApiKey> {
        self.0.lock().clone()
    }
}

async fn status_with(url: &str, key: Option<&str>) -> u16 {
    let mut request = Client::new().get(url);
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn keys_may_come_and_go_while_the_server_runs() {
    let keys = Arc::new(Changing::default());
    let options = Options {
        more_api_keys: Some(keys.clone()),
        owner_key: Some(ApiKey::new("owner")),
        ..Options::default()
    };
    let server = start(ScriptedBackend::default(), options).await;
    let url = server.at("/v1/models");
    assert_eq!(status_with(&url, None).await, 200);
    keys.set(&["laptop", "phone"]);
    for (key, status) in [
        (None, 401),
        (Some("phone"), 200),
        (Some("laptop"), 200),
        (Some("owner"), 200),
        (Some("other"), 401),
    ] {
        assert_eq!(status_with(&url, key).await, status, "{key:?}");
    }
    keys.set(&["laptop"]);
    assert_eq!(status_with(&url, Some("phone")).await, 401);
    // The last key is gone, and the server is not open for that.
    keys.set(&[]);
    assert_eq!(status_with(&url, None).await, 401);
    assert_eq!(status_with(&url, Some("laptop")).await, 401);
    assert_eq!(status_with(&url, Some("owner")).await, 200);
    assert_eq!(status_with(&server.at("/health"), None).await, 200);
}

#[tokio::test]
async fn a_missing_key_is_told_in_each_dialects_words() {
    let options = Options {
        api_keys: vec![ApiKey::new("key")],
        ..Options::default()
    };
    let server = start(ScriptedBackend::default(), options).await;
    for (path, pointer, word) in [
        ("/v1/chat/completions", "/error/code", "invalid_api_key"),
        ("/v1/responses", "/error/code", "invalid_api_key"),
        ("/api/v0/models", "/error/code", "invalid_api_key"),
        ("/v1/messages", "/error/type", "authentication_error"),
        ("/v1/v1/messages", "/error/type", "authentication_error"),
        (
            "/anthropic/v1/models",
            "/error/type",
            "authentication_error",
        ),
    ] {
        let response = Client::new().post(server.at(path)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body.pointer(pointer).unwrap(), word, "{path}: {body}");
    }
    let response = Client::new()
        .post(server.at("/api/chat"))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let body: Value = response.json().await.unwrap();
    assert!(body["error"].is_string(), "{body}");
}

#[tokio::test]
async fn names_that_are_not_ours_are_refused() {
    let options = Options {
        own_names: vec!["mini".into()],
        visitors: Some(Arc::new(Listed)),
        ..Options::default()
    };
    let control = Router::new().route("/x/status", get(async || "owner"));
    let server = start_with_control(control, options).await;
    for (host, for_clients, for_owner) in [
        ("localhost:8000", 200, 200),
        ("[::1]:8000", 200, 200),
        ("mini", 200, 200),
        ("mini.local:8000", 200, 200),
        ("proxy.example", 200, 200),
        ("host.docker.internal:8000", 200, 403),
        ("evil.local", 200, 403),
        ("evil.example", 403, 403),
        ("localhost.evil.example:8000", 403, 403),
    ] {
        for (path, status) in [
            ("/v1/models", for_clients),
            ("/health", for_clients),
            ("/", for_clients),
            ("/x/status", for_owner),
            ("//x//status/", for_owner),
        ] {
            let response = Client::new()
                .get(server.at(path))
                .header("host", host)
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), status, "{host}{path}");
            if status == 403 {
                let text = response.text().await.unwrap();
                assert!(text.contains("allowedHosts"), "{text}");
            }
        }
    }
}

/// Lets in one name and one site.
#[derive(Debug)]
struct Listed;

impl Visitors for Listed {
    fn allows_host(&self, host: &str) -> bool {
        host == "proxy.example"
    }

    fn allows_origin(&self, origin: &str) -> bool {
        origin == "https://chat.example"
    }
}

#[tokio::test]
async fn no_spelling_of_a_path_gets_around_a_guard() {
    let options = Options {
        api_keys: vec![ApiKey::new("key")],
        ..Options::default()
    };
    let guarded = Router::new()
        .route("/x/status", get(async || "owner"))
        .route_layer(from_fn(async |_: Request, _: Next| {
            StatusCode::UNAUTHORIZED.into_response()
        }));
    let server = start_with_control(guarded, options).await;
    for path in [
        "/v1/models",
        "//v1/models",
        "/v1//models/",
        "/models//",
        "/v1/v1/models/",
        "//api/tags",
        "/api/tags/",
        "/api//v0//models/",
        "//anthropic//v1/models/",
        "/x/status",
        "//x/status",
        "/x//status",
        "/x/status/",
    ] {
        let url = server.at(path);
        assert_eq!(status_with(&url, None).await, 401, "{path}");
        if !path.contains("/x/") {
            assert_eq!(status_with(&url, Some("key")).await, 200, "{path}");
        }
    }
    for path in ["//health", "/health/", "/v1//health/", "//"] {
        assert_eq!(status_with(&server.at(path), None).await, 200, "{path}");
    }
}

#[tokio::test]
async fn errors_keep_the_dialect_of_a_path_with_too_many_slashes() {
    let options = Options {
        api_keys: vec![ApiKey::new("key")],
        ..Options::default()
    };
    let server = start(ScriptedBackend::default(), options).await;
    for (path, pointer, word) in [
        ("//v1//messages/", "/error/type", "authentication_error"),
        (
            "//anthropic//v1/models",
            "/error/type",
            "authentication_error",
        ),
        ("//v1/chat//completions/", "/error/code", "invalid_api_key"),
    ] {
        let response = Client::new().post(server.at(path)).send().await.unwrap();
        let body: Value = response.json().await.unwrap();
        assert_eq!(body.pointer(pointer).unwrap(), word, "{path}: {body}");
    }
    let response = Client::new()
        .post(server.at("//api//chat/"))
        .send()
        .await
        .unwrap();
    let body: Value = response.json().await.unwrap();
    assert!(body["error"].is_string(), "{body}");
}

#[tokio::test]
async fn a_name_with_two_addresses_is_bound_on_both() {
    let options = Options::default();
    let listener = bind("localhost", 0, IfBusy::Fail, &options).await.unwrap();
    let port = listener.local_addr().port();
    let addresses: Vec<_> = tokio::net::lookup_host(("localhost", port))
        .await
        .unwrap()
        .collect();
    let mut bound = 0;
    for address in addresses {
        match tokio::net::TcpListener::bind(address).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => bound += 1,
            // A machine without IPv6 has no such address.
            Err(_) if address.is_ipv6() => {}
            other => panic!("{address} is not held: {other:?}"),
        }
    }
    assert!(bound > 0);
}

#[tokio::test]
async fn an_ipv6_address_is_bound_with_and_without_brackets() {
    let options = Options::default();
    for host in ["::1", "[::1]"] {
        match bind(host, 0, IfBusy::Fail, &options).await {
            Ok(listener) => {
                let address = listener.local_addr();
                assert!(address.is_ipv6() && address.port() != 0, "{address}");
            }
            // A machine without IPv6 says so, and does not misread the address.
            Err(error) => assert!(matches!(error, BindError::Listen { .. }), "{error}"),
        }
    }
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_even_without_asking_first() {
    let options = Options {
        visitors: Some(Arc::new(Listed)),
        ..Options::default()
    };
    let server = start(ScriptedBackend::default(), options).await;
    for (origin, status) in [
        ("http://localhost:5173", 200),
        ("https://chat.example", 200),
        ("https://evil.example", 403),
        ("http://evil.local", 403),
    ] {
        let response = Client::new()
            .get(server.at("/v1/models"))
            .header("origin", origin)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), status, "{origin}");
        let allowed = response.headers().get("access-control-allow-origin");
        assert_eq!(
            allowed.map(|value| value.to_str().unwrap()),
            (status == 200).then_some(origin)
        );
    }
}

#[tokio::test]
async fn a_preflight_allows_the_headers_sdks_send() {
    let options = Options {
        api_keys: vec![ApiKey::new("key")],
        ..Options::default()
    };
    let server = start(ScriptedBackend::default(), options).await;
    for wanted in [
        // The official SDKs in a browser.
        "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,\
         x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,\
         x-stainless-runtime-version,x-stainless-timeout,openai-organization,openai-project",
        "anthropic-beta,anthropic-dangerous-direct-browser-access,anthropic-version,content-type,\
         x-api-key,x-stainless-helper-method",
        // Agents that run in an editor's web view.
        "accept,authorization,content-type,http-referer,x-title,x-session-id,user-agent",
    ] {
        let response = Client::new()
            .request(Method::OPTIONS, server.at("/v1/chat/completions"))
            .header("origin", "http://localhost:3000")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", wanted)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let headers = response.headers();
        assert_eq!(
            headers["access-control-allow-origin"],
            "http://localhost:3000"
        );
        assert_eq!(headers["access-control-allow-headers"], wanted);
        let methods = headers["access-control-allow-methods"].to_str().unwrap();
        assert!(methods.contains("POST"), "{methods}");
    }
    let elsewhere = Client::new()
        .request(Method::OPTIONS, server.at("/v1/chat/completions"))
        .header("origin", "https://evil.example")
        .header("access-control-request-method", "POST")
        .send()
        .await
        .unwrap();
    let allowed = elsewhere.headers().get("access-control-allow-origin");
    assert_eq!(allowed, None);
}

#[tokio::test]
async fn a_taken_port_is_an_error_or_the_next_one_is_found() {
    let options = Options::default();
    let taken = bind("127.0.0.1", 0, IfBusy::Fail, &options).await.unwrap();
    let port = taken.local_addr().port();
    assert!(matches!(
        bind("127.0.0.1", port, IfBusy::Fail, &options).await,
        Err(BindError::Busy { port: busy, .. }) if busy == port
    ));
    let next = bind("127.0.0.1", port, IfBusy::NextFree, &options)
        .await
        .unwrap();
    assert!(next.local_addr().port() > port);
    assert!(next.local_addr().port() <= port + 20);
}

#[tokio::test]
async fn other_machines_are_let_in_with_a_key_only() {
    let without = Options::default();
    assert!(matches!(
        bind("0.0.0.0", 0, IfBusy::Fail, &without).await,
        Err(BindError::NeedsKey { .. })
    ));
    let with = Options {
        api_keys: vec![ApiKey::new("key")],
        ..Options::default()
    };
    assert!(bind("0.0.0.0", 0, IfBusy::Fail, &with).await.is_ok());
    let keys = Arc::new(Changing::default());
    keys.set(&["named"]);
    let with = Options {
        more_api_keys: Some(keys),
        ..Options::default()
    };
    assert!(bind("0.0.0.0", 0, IfBusy::Fail, &with).await.is_ok());
    // The owner's own key lets no other client in.
    let without = Options {
        owner_key: Some(ApiKey::new("owner")),
        ..Options::default()
    };
    assert!(matches!(
        bind("0.0.0.0", 0, IfBusy::Fail, &without).await,
        Err(BindError::NeedsKey { .. })
    ));
}
