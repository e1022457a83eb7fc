//! Which requests are let in.

use axum::http::StatusCode;

use crate::support::{Running, TOKEN, request};

#[tokio::test]
async fn every_route_is_closed_without_the_token() {
    let running = Running::new();
    for (method, path) in [
        ("GET", "/x/status"),
        ("GET", "/x/events"),
        ("GET", "/x/openapi.json"),
        ("POST", "/x/models/load"),
        ("POST", "/x/shutdown"),
        ("PATCH", "/x/settings"),
    ] {
        for headers in [
            &[][..],
            &[("authorization", "Bearer wrong")][..],
            &[("authorization", TOKEN)][..],
            &[("x-control-token", "")][..],
        ] {
            let response = running.send(request(method, path, headers, "{}")).await;
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
            assert!(!running.is_stopped());
        }
    }
}

#[tokio::test]
async fn the_token_may_come_in_a_header_of_its_own() {
    let headers = [("x-control-token", TOKEN)];
    let running = Running::new();
    let response = running
        .send(request("GET", "/x/status", &headers, ""))
        .await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_page_of_another_site_is_refused_even_with_the_token() {
    let running = Running::new();
    let headers = [
        ("x-control-token", TOKEN),
        ("origin", "https://evil.example"),
        ("host", "127.0.0.1:8000"),
    ];
    let response = running
        .send(request("POST", "/x/shutdown", &headers, ""))
        .await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert!(!running.is_stopped());
}
