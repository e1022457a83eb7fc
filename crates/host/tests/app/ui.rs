//! What a browser gets.

use reqwest::Response;

use crate::support::{Running, client};

async fn get(url: &str, accept: &str) -> Response {
    let request = client().get(url).header("accept", accept);
    request.send().await.unwrap()
}

#[tokio::test]
async fn a_browser_gets_a_page_and_others_are_told_that_ollama_is_running() {
    let running = Running::start().await;
    let door = running.open().await;
    let url = format!("{}/", door.url());
    let page = get(&url, "text/html,application/xhtml+xml,*/*;q=0.8").await;
    assert_eq!(page.status(), 200);
    let headers = page.headers();
    assert_eq!(headers["content-type"], "text/html; charset=utf-8");
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["referrer-policy"], "no-referrer");
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"));
    assert!(!policy.contains("unsafe"));
    let text = page.text().await.unwrap();
    assert!(text.contains("macMLX"));
    assert!(!text.contains(running.app.control_token()));
    for accept in ["*/*", "application/json"] {
        let reply = get(&url, accept).await;
        assert_eq!(reply.text().await.unwrap(), "Ollama is running");
    }
    running.app.shut_down().await;
}

/// Needs the built UI.
#[cfg(feature = "ui")]
#[tokio::test]
async fn the_pages_files_are_kept_for_ever_and_ask_for_no_key() {
    let running = Running::start().await;
    running.call("POST", "/x/keys", r#"{"name": "a"}"#).await;
    let door = running.open().await;
    let page = get(&format!("{}/", door.url()), "text/html").await;
    let page = page.text().await.unwrap();
    let (_, rest) = page.split_once("src=\"/assets/").unwrap();
    let (name, _) = rest.split_once('"').unwrap();
    let script = get(&format!("{}/assets/{name}", door.url()), "*/*").await;
    assert_eq!(script.status(), 200);
    let headers = script.headers();
    assert_eq!(headers["content-type"], "text/javascript; charset=utf-8");
    assert!(
        headers["cache-control"]
            .to_str()
            .unwrap()
            .contains("immutable")
    );
    assert_eq!(headers["x-content-type-options"], "nosniff");
    for missing in ["none.js", "..%2findex.html", ".vite/manifest.json"] {
        let url = format!("{}/assets/{missing}", door.url());
        assert_eq!(get(&url, "*/*").await.status(), 404, "{missing}");
    }
    running.app.shut_down().await;
}
