//! Keys, hosts and origins.

use macmlx_inference::ScriptedBackend;
use macmlx_server::{ApiKey, BindError, IfBusy, Options, bind};
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;

use crate::support::start;

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
        ("authorization", "first", 401),
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

#[tokio::test]
async fn names_that_are_not_ours_are_refused() {
    let options = Options {
        allowed_hosts: vec!["mini.local".into()],
        ..Options::default()
    };
    let server = start(ScriptedBackend::default(), options).await;
    for (host, status) in [
        ("localhost:8000", 200),
        ("mini.local", 200),
        ("evil.example", 403),
        ("localhost.evil.example:8000", 403),
    ] {
        for path in ["/v1/models", "/health", "/"] {
            let response = Client::new()
                .get(server.at(path))
                .header("host", host)
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), status, "{host}{path}");
        }
    }
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_even_without_asking_first() {
    let server = start(ScriptedBackend::default(), Options::default()).await;
    for (origin, status) in [
        ("http://localhost:5173", 200),
        ("https://evil.example", 403),
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
    let wanted = "authorization,x-api-key,anthropic-version,x-stainless-os,content-type";
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
}
