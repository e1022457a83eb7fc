//! The routes of MCP servers, over a server that is a shell script.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request, StatusCode},
};
use futures::StreamExt;
use macmlx_control::{
    events::{Event, Events},
    guard, mcp,
};
use macmlx_mcp::{LoginShell, Pool, PoolSetup};
use macmlx_settings::{Environment, Home, McpServers, ToolPolicies};
use serde_json::{Value, json};
use tower::ServiceExt;

const SERVER: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    case $line in
    *'"method":"initialize"'*)
        answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},
            "serverInfo":{"name":"shell","version":"1"}}' | tr -d '\n'; echo ;;
    *'"method":"tools/list"'*)
        answer '{"tools":[{"name":"greet","title":"Greeting","inputSchema":{"type":"object"},
            "annotations":{"readOnlyHint":true}}]}' | tr -d '\n'; echo ;;
    esac
done
"#;

struct Running {
    folder: tempfile::TempDir,
    home: Home,
    pool: Arc<Pool>,
    router: Router,
}

impl Running {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("server.sh"), SERVER).unwrap();
        let home = Home::at(folder.path().join("home"));
        fs::create_dir(home.root()).unwrap();
        let path = std::env::vars().find(|(name, _)| name == "PATH");
        let environment = Environment {
            variables: path.into_iter().collect(),
            ..Environment::default()
        };
        let pool = Arc::new(Pool::start(PoolSetup {
            servers: Arc::new(McpServers::new(&home, &environment)),
            policies: Arc::new(ToolPolicies::new(&home)),
            shell: Arc::new(LoginShell::asking(None, &environment)),
        }));
        let router = guard("token".into(), mcp::routes().with_state(pool.clone()));
        Self {
            folder,
            home,
            pool,
            router,
        }
    }

    fn script(&self) -> PathBuf {
        self.folder.path().join("server.sh")
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", "Bearer token");
        let request = match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        let response = self.router.clone().oneshot(request.unwrap()).await.unwrap();
        let status = response.status();
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).unwrap()
        };
        (status, body)
    }

    async fn list(&self) -> Value {
        let (status, body) = self.send(Method::GET, "/x/mcp", None).await;
        assert_eq!(status, StatusCode::OK);
        body
    }

    async fn running(&self) -> Value {
        let up = async {
            loop {
                let list = self.list().await;
                let server = &list["servers"][0];
                if server["state"] == "running" {
                    return server.clone();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), up)
            .await
            .unwrap()
    }

    async fn put(&self) -> (StatusCode, Value) {
        let body = json!({"command": "sh", "args": [self.script()], "env": {"KEY": "secret"}});
        self.send(Method::PUT, "/x/mcp/my%20shell", Some(body))
            .await
    }
}

#[tokio::test]
async fn a_server_from_its_first_day_to_its_last() {
    let running = Running::new();
    let list = running.list().await;
    assert_eq!(list["servers"], json!([]));
    assert_eq!(list["error"], Value::Null);
    let path = running.home.mcp_file();
    assert_eq!(list["path"], json!(path));

    let (status, server) = running.put().await;
    assert_eq!(status, StatusCode::OK, "{server}");
    assert_eq!(server["name"], "my shell");
    assert_eq!(server["env"], json!(["KEY"]));
    assert!(!server.to_string().contains("secret"));

    let server = running.running().await;
    assert_eq!(
        server["server_info"],
        json!({"name": "shell", "version": "1"})
    );
    assert_eq!(server["error"], Value::Null);
    assert!(server["pid"].is_u64());
    assert!(server["started"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        server["tools"],
        json!([{
            "name": "greet",
            "full_name": "my_shell__greet",
            "title": "Greeting",
            "description": null,
            "input_schema": {"type": "object"},
            "is_read_only": true,
            "policy": "ask",
        }])
    );

    let policy = "/x/mcp/my%20shell/tools/greet/policy";
    let (status, server) = running
        .send(Method::PUT, policy, Some(json!({"policy": "never"})))
        .await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(server["tools"][0]["policy"], "never");
    let settings = fs::read_to_string(running.home.settings_file()).unwrap();
    assert!(
        settings.contains(r#""my_shell__greet": "never""#),
        "{settings}"
    );

    let (status, restarted) = running
        .send(Method::POST, "/x/mcp/my%20shell/restart", Some(json!({})))
        .await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(restarted["state"], "starting");
    let again = running.running().await;
    assert_ne!(again["pid"], server["pid"]);
    assert_eq!(again["tools"][0]["policy"], "never");

    // The value that no route shows is kept.
    let body = json!({"command": "sh", "args": [running.script()],
        "env": {"KEY": null, "MORE": "1"}, "is_enabled": false});
    let (status, server) = running
        .send(Method::PUT, "/x/mcp/my%20shell", Some(body))
        .await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(server["state"], "disabled");
    assert_eq!(server["is_enabled"], false);
    let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let written = &written["mcpServers"]["my shell"];
    assert_eq!(written["env"], json!({"KEY": "secret", "MORE": "1"}));
    assert_eq!(written["disabled"], true);

    let (status, _) = running
        .send(Method::DELETE, "/x/mcp/my%20shell", None)
        .await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(running.list().await["servers"], json!([]));
    running.pool.stop().await;
}

#[tokio::test]
async fn mistakes_are_the_callers_and_are_named() {
    let running = Running::new();
    for (method, path, body, status, code, param) in [
        (
            Method::DELETE,
            "/x/mcp/none",
            None,
            404,
            "mcp_server_not_found",
            None,
        ),
        (
            Method::POST,
            "/x/mcp/none/restart",
            None,
            404,
            "mcp_server_not_found",
            None,
        ),
        (
            Method::PUT,
            "/x/mcp/none/tools/greet/policy",
            Some(json!({"policy": "ask"})),
            404,
            "mcp_server_not_found",
            None,
        ),
        (
            Method::PUT,
            "/x/mcp/none/tools/greet/policy",
            Some(json!({"policy": "maybe"})),
            400,
            "invalid_request",
            Some("policy"),
        ),
        (
            Method::PUT,
            "/x/mcp/a",
            Some(json!({"command": " "})),
            400,
            "invalid_request",
            Some("command"),
        ),
        (
            Method::PUT,
            "/x/mcp/a%0Ab",
            Some(json!({"command": "x"})),
            400,
            "invalid_request",
            Some("name"),
        ),
        (
            Method::PUT,
            "/x/mcp/a",
            Some(json!({"command": "x", "env": {"KEY": null}})),
            400,
            "invalid_request",
            Some("env.KEY"),
        ),
    ] {
        let (got, error) = running.send(method, path, body).await;
        assert_eq!(got, status, "{path}: {error}");
        assert_eq!(error["error"]["code"], code, "{error}");
        assert_eq!(error["error"]["param"], json!(param), "{error}");
    }
    assert!(!running.home.mcp_file().exists());

    fs::write(running.home.mcp_file(), "{").unwrap();
    let (status, error) = running.put().await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(error["error"]["code"], "mcp_json_unreadable");
    assert_eq!(fs::read_to_string(running.home.mcp_file()).unwrap(), "{");
    running.pool.reload().await;
    assert!(
        running.list().await["error"]
            .as_str()
            .unwrap()
            .contains("mcp.json")
    );
    running.pool.stop().await;
}

#[tokio::test]
async fn watchers_are_told() {
    let running = Running::new();
    let events = Arc::new(Events::default());
    let mut heard = Box::pin(events.subscribe());
    let (pool, teller) = (running.pool.clone(), events.clone());
    let forward = tokio::spawn(async move { mcp::forward(&pool, &teller).await });
    // The forwarder listens once it runs.
    tokio::task::yield_now().await;
    running.put().await;
    let until_it_runs = async {
        loop {
            if let Event::McpServer { server } = heard.next().await.unwrap()
                && server.state == mcp::McpState::Running
            {
                return server;
            }
        }
    };
    let server = tokio::time::timeout(Duration::from_mins(1), until_it_runs)
        .await
        .unwrap();
    assert_eq!(server.tools[0].full_name, "my_shell__greet");
    running
        .send(Method::DELETE, "/x/mcp/my%20shell", None)
        .await;
    let until_it_is_gone = async {
        loop {
            if let Event::McpServerRemoved { name } = heard.next().await.unwrap() {
                return name;
            }
        }
    };
    let gone = tokio::time::timeout(Duration::from_mins(1), until_it_is_gone).await;
    assert_eq!(gone.unwrap(), "my shell");
    forward.abort();
    running.pool.stop().await;
}
