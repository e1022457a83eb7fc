//! Attacks on the control routes, each on every route of their document: nothing is given, and
//! nothing changes.

use macmlx_host::DoorOptions;
use reqwest::{Method, RequestBuilder, header};
use serde_json::Value;

use crate::support::{Running, client};

/// A route of the document.
struct Route {
    method: Method,
    path: String,
    takes_body: bool,
}

async fn routes(running: &Running) -> Vec<Route> {
    let (_, document) = running.call("GET", "/x/openapi.json", "").await;
    let mut routes = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_uppercase();
            routes.push(Route {
                method: Method::from_bytes(method.as_bytes()).unwrap(),
                path: filled(path),
                takes_body: operation["requestBody"].is_object(),
            });
        }
    }
    assert!(routes.len() > 20, "the document has all routes");
    routes
}

/// Fills each parameter of a path with some value.
pub(crate) fn filled(path: &str) -> String {
    path.split('/')
        .map(|segment| {
            if segment.starts_with('{') {
                "00000000-0000-4000-8000-000000000000"
            } else {
                segment
            }
        })
        .collect::<Vec<_>>()
        .join("/")
}

type Attack = fn(RequestBuilder, &str, &str) -> RequestBuilder;

/// Each with what it is answered; the token and a client's key are at hand.
const ATTACKS: &[(&str, u16, Attack)] = &[
    ("no token", 401, |request, _, _| request),
    ("a wrong token", 401, |request, token, _| {
        request.bearer_auth(&token[1..])
    }),
    ("an empty token", 401, |request, _, _| {
        request.header("x-control-token", "")
    }),
    ("a client's key", 401, |request, _, key| {
        request.bearer_auth(key).header("x-api-key", key)
    }),
    ("the token as a client's key", 401, |request, token, _| {
        request.header("x-api-key", token)
    }),
    ("the token in the query", 401, |request, token, _| {
        let (client, request) = request.build_split();
        let mut request = request.unwrap();
        for name in ["token", "access_token", "x-control-token"] {
            request.url_mut().query_pairs_mut().append_pair(name, token);
        }
        RequestBuilder::from_parts(client, request)
    }),
    ("the token in a cookie", 401, |request, token, _| {
        request.header(header::COOKIE, format!("token={token}"))
    }),
    ("another site", 403, |request, token, _| {
        request
            .bearer_auth(token)
            .header(header::ORIGIN, "https://evil.example")
    }),
    ("another port of this machine", 403, |request, token, _| {
        request
            .bearer_auth(token)
            .header(header::ORIGIN, "http://127.0.0.1:1")
    }),
    ("a page without an origin", 403, |request, token, _| {
        request.bearer_auth(token).header(header::ORIGIN, "null")
    }),
    ("a name that points here", 403, |request, token, _| {
        request
            .bearer_auth(token)
            .header(header::HOST, "evil.example")
    }),
    ("that name as its own origin", 403, |request, token, _| {
        request
            .bearer_auth(token)
            .header(header::HOST, "evil.example:8000")
            .header(header::ORIGIN, "http://evil.example:8000")
    }),
    ("a name of the local network", 403, |request, token, _| {
        request
            .bearer_auth(token)
            .header(header::HOST, "evil.local:8000")
            .header(header::ORIGIN, "http://evil.local:8000")
    }),
    ("a name of containers", 403, |request, token, _| {
        request
            .bearer_auth(token)
            .header(header::HOST, "host.docker.internal:8000")
    }),
    ("a form of another site", 403, |request, _, _| {
        request
            .header(header::ORIGIN, "https://evil.example")
            .header(header::CONTENT_TYPE, "text/plain")
            .body("{}")
    }),
];

#[tokio::test]
async fn no_attack_gets_or_changes_anything() {
    let running = Running::start().await;
    let (_, made) = running
        .call("POST", "/x/keys", r#"{"name": "client"}"#)
        .await;
    let key = made["key"].as_str().unwrap().to_owned();
    let door = running.open().await;
    let token = running.app.control_token().to_owned();
    let stopping = running.app.stopping();
    let (routes, before) = (routes(&running).await, running.state());
    let client = client();
    for route in &routes {
        let url = format!("{}{}", door.url(), route.path);
        for (name, expected, attack) in ATTACKS {
            let request = client.request(route.method.clone(), &url);
            let response = attack(request, &token, &key).send().await.unwrap();
            let what = format!("{name}: {} {}", route.method, route.path);
            assert_eq!(response.status().as_u16(), *expected, "{what}");
            let headers = response.headers();
            assert!(
                !headers.contains_key("access-control-allow-origin"),
                "{what}"
            );
            let body: Value = response.json().await.unwrap();
            let body = body.as_object().unwrap();
            assert!(
                body.contains_key("error") && body.len() == 1,
                "{what}: {body:?}"
            );
        }
        if route.takes_body {
            let request = client
                .request(route.method.clone(), &url)
                .bearer_auth(&token);
            for content_type in ["text/plain", "application/x-www-form-urlencoded"] {
                let response = request
                    .try_clone()
                    .unwrap()
                    .header(header::CONTENT_TYPE, content_type)
                    .body("{}")
                    .send()
                    .await
                    .unwrap();
                let what = format!("{content_type}: {} {}", route.method, route.path);
                assert_eq!(response.status().as_u16(), 415, "{what}");
            }
        }
        // What a browser asks before it lets a page of another site send more.
        let preflight = client
            .request(Method::OPTIONS, &url)
            .header(header::ORIGIN, "https://evil.example")
            .header("access-control-request-method", route.method.as_str())
            .header(
                "access-control-request-headers",
                "authorization,content-type",
            )
            .send()
            .await
            .unwrap();
        for name in preflight.headers().keys() {
            assert!(
                !name.as_str().starts_with("access-control-"),
                "{url}: {name}"
            );
        }
    }
    assert_eq!(running.state(), before);
    tokio::select! {
        biased;
        () = stopping => panic!("it was stopped"),
        () = std::future::ready(()) => {}
    }
    // All that was not for want of a door.
    let response = client
        .get(format!("{}/x/status", door.url()))
        .bearer_auth(&token)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status().as_u16(), 200);
    running.app.shut_down().await;
}

#[tokio::test]
async fn other_machines_come_in_with_a_key_only() {
    let running = Running::start().await;
    let lan = DoorOptions {
        host: Some("0.0.0.0".into()),
        port: Some(0),
        ..DoorOptions::default()
    };
    let refused = running.app.open_door(lan.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("API key"), "{refused}");
    running
        .call("PATCH", "/x/settings", r#"{"serverHost": "0.0.0.0"}"#)
        .await;
    let (_, door) = running.call("POST", "/x/door/open", "{}").await;
    assert_eq!(door["error"]["code"], "api_key_required");

    running.call("POST", "/x/keys", r#"{"name": "a"}"#).await;
    let door = running.app.open_door(lan).await.unwrap();
    assert!(door.needs_api_key);
    // The last key goes: the door stays closed to everyone rather than open to all.
    running.call("DELETE", "/x/keys/a", "").await;
    let url = format!("http://127.0.0.1:{}/v1/models", door.address.port());
    assert_eq!(client().get(url).send().await.unwrap().status(), 401);
    running.app.shut_down().await;
}
