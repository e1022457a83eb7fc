//! The program itself, in a home of its own: what it prints, how it exits, and a whole life of a
//! server.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use serde_json::{Value, json};

struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A home with one tiny model that runs.
    fn with_model() -> Self {
        let home = Self::new();
        home.succeed(&["import", &fixture(), "--name", "test/tiny"]);
        home
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_macmlx"));
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.path())
            .env("MACMLX_HOME", self.path().join("data"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        serde_json::from_str(&self.succeed(&arguments)).unwrap()
    }

    /// What a failing command says.
    fn fail(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(message.lines().count(), 1, "{message}");
        message
    }
}

fn fixture() -> String {
    let path: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "../gguf/tests/files/llama_q4_1.gguf",
    ]
    .iter()
    .collect();
    path.to_str().unwrap().to_owned()
}

/// A server that is ended with the test, however that ends.
struct Served {
    child: Child,
    greeting: Value,
}

impl Served {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let any_port: &[&str] = if arguments.contains(&"--port") {
            &[]
        } else {
            &["--port", "0"]
        };
        let arguments = [&["serve", "--json"], any_port, arguments].concat();
        let mut child = home
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            child,
            greeting: serde_json::from_str(&line).unwrap(),
        }
    }

    fn port(&self) -> u16 {
        let address = self.greeting["address"].as_str().unwrap();
        address.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Status line, headers and body of a GET.
    fn get(&self, path: &str, key: Option<&str>) -> String {
        let key = key.map_or_else(String::new, |key| {
            format!("Authorization: Bearer {key}\r\n")
        });
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{key}\r\n"
        ))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let length = body.len();
        let answer = self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn send(&self, request: &str) -> String {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn status(&self, path: &str, key: Option<&str>) -> u16 {
        let answer = self.get(path, key);
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn ask(&self, path: &str) -> Value {
        let answer = self.get(path, None);
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn signal(&self, name: &str) {
        let killed = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_empty_home_is_no_error() {
    let home = Home::new();
    assert_eq!(home.json(&["list"]), json!({"models": []}));
    assert_eq!(home.json(&["ps"]), json!({"server": null, "models": []}));
    assert_eq!(home.json(&["stop"]), json!({"stopped": false}));
}

#[test]
fn a_model_is_imported_listed_shown_and_removed() {
    let home = Home::new();
    let imported = home.json(&["import", &fixture(), "--name", "test/tiny"]);
    assert_eq!(imported["id"], "test/tiny");
    assert_eq!(imported["model_type"], "llama");
    let listed = home.json(&["list"]);
    assert_eq!(listed["models"][0]["id"], "test/tiny");
    assert_eq!(listed["models"][0]["quantization"], "4-bit");
    assert_eq!(listed["models"][0]["is_complete"], true);
    assert!(home.succeed(&["ls"]).contains("test/tiny"));
    let shown = home.json(&["show", "TINY"]);
    assert_eq!(shown["id"], "test/tiny");
    assert_eq!(shown["has_chat_template"], true);
    assert_eq!(shown["is_loaded"], false);
    assert!(shown["weights"].as_str().unwrap().contains("4-bit"));
    assert!(home.succeed(&["show", "tiny"]).contains("once loaded"));

    assert!(home.fail(&["rm", "tiny"]).contains("--yes"));
    assert!(home.path().join("data/models/test/tiny").exists());
    assert_eq!(home.json(&["rm", "tiny", "--yes"])["removed"], "test/tiny");
    assert!(!home.path().join("data/models/test").exists());
}

#[test]
fn failures_say_the_cause_and_the_next_step() {
    let home = Home::with_model();
    assert!(
        home.fail(&["show", "tinny"])
            .contains("did you mean `test/tiny`")
    );
    assert!(
        home.fail(&["run", "nothing", "hi"])
            .contains("not on this machine")
    );
    assert!(
        home.fail(&["import", "/no/such.gguf"])
            .contains("/no/such.gguf")
    );
    assert!(home.fail(&["run", "tiny"]).contains("nothing to ask"));
    assert!(
        home.fail(&["serve", "--host", "0.0.0.0"])
            .contains("API key")
    );
    assert!(home.fail(&["serve", "--model", "gpt"]).contains("gpt"));
    let refused = fixture().replace("llama_q4_1", "llama_q5_0");
    assert!(home.fail(&["import", &refused]).contains("Q5_0"));
    let output = home.run(&["show", "x", "--json"]);
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains('x'));
    assert_eq!(home.run(&["frobnicate"]).status.code(), Some(2));
}

#[test]
fn an_unreachable_hub_is_one_line() {
    let home = Home::new();
    let output = home
        .command(&["pull", "owner/model"])
        .env("HF_ENDPOINT", "http://127.0.0.1:1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    let last = message.lines().last().unwrap();
    assert!(
        last.starts_with("error: cannot reach http://127.0.0.1:1"),
        "{message}"
    );
}

#[test]
fn incomplete_models_are_listed_with_the_reason() {
    let home = Home::with_model();
    let folder = home.path().join("data/models/test/half");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.json"), r#"{"model_type": "llama"}"#).unwrap();
    let listed = home.json(&["list"]);
    assert_eq!(listed["models"][0]["id"], "test/half");
    assert_eq!(listed["models"][0]["is_complete"], false);
    assert!(
        listed["models"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("weights")
    );
    assert!(home.fail(&["run", "half", "hi"]).contains("weights"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = Home::with_model();
    let mut child = home
        .command(&["list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn unreadable_settings_are_kept_aside_and_reported() {
    let home = Home::new();
    let data = home.path().join("data");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("settings.json"), "{").unwrap();
    let output = home.run(&["list"]);
    assert!(output.status.success());
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("settings.json.unreadable-"), "{note}");
    assert!(!data.join("settings.json").exists());
}

#[test]
fn a_server_lives_answers_and_is_stopped() {
    let home = Home::with_model();
    let mut served = Served::start(&home, &[]);
    let port = served.greeting["address"]
        .as_str()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    let record: Value =
        serde_json::from_slice(&fs::read(home.path().join("data/macmlx.pid")).unwrap()).unwrap();
    assert_eq!(record["pid"], served.child.id());
    assert_eq!(record["port"].to_string(), port);
    assert_eq!(record["owner"], "cli");
    let token = fs::read_to_string(home.path().join("data/control-token")).unwrap();
    assert_eq!(
        served.greeting["ui_url"],
        format!("http://127.0.0.1:{port}/#token={}", token.trim())
    );

    assert!(
        home.fail(&["serve"])
            .contains(&format!("already running on port {port}"))
    );
    let before = home.json(&["ps"]);
    assert_eq!(before["server"]["requests_total"], 0);
    assert_eq!(before["models"], json!([]));

    let answer = home.json(&[
        "run",
        "tiny",
        "Hello",
        "--max-tokens",
        "3",
        "--temperature",
        "0",
    ]);
    assert_eq!(answer["model"], "test/tiny");
    assert!(answer["usage"]["completion_tokens"].as_u64().unwrap() <= 3);
    let after = home.json(&["ps"]);
    assert_eq!(after["server"]["requests_total"], 1);
    assert_eq!(after["models"][0]["id"], "test/tiny");
    assert_eq!(home.json(&["show", "tiny"])["is_loaded"], true);

    assert_eq!(home.json(&["stop"])["stopped"], true);
    assert!(served.child.wait().unwrap().success());
    assert!(!home.path().join("data/macmlx.pid").exists());
}

#[test]
fn a_taken_port_is_replaced_and_said_so() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    if port > u16::MAX - 20 {
        return;
    }
    let served = Served::start(&home, &["--port", &port.to_string()]);
    assert_eq!(served.greeting["wanted_port"], port);
    drop(served);
    let fixed = ["serve", "--fixed-port", "--port", &port.to_string()];
    assert!(home.fail(&fixed).contains(&port.to_string()));
}

#[test]
fn a_killed_server_leaves_nothing_that_hinders() {
    let home = Home::new();
    let mut served = Served::start(&home, &[]);
    served.signal("-KILL");
    served.child.wait().unwrap();
    assert!(home.path().join("data/macmlx.pid").exists());
    assert_eq!(home.json(&["ps"])["server"], Value::Null);
    let mut next = Served::start(&home, &[]);
    next.signal("-TERM");
    assert!(next.child.wait().unwrap().success());
    assert!(!home.path().join("data/macmlx.pid").exists());
}

#[test]
fn an_answer_without_a_server_and_from_a_pipe() {
    let home = Home::with_model();
    let mut child = home
        .command(&[
            "run",
            "tiny",
            "--max-tokens",
            "2",
            "--temperature",
            "0",
            "--json",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"Hello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["model"], "test/tiny");
    assert!(!home.path().join("data/macmlx.pid").exists());
}

#[test]
fn the_servers_key_does_not_hinder_its_owner() {
    let home = Home::with_model();
    let served = Served::start(&home, &["--api-key", "secret"]);
    assert_eq!(served.greeting["needs_api_key"], true);
    let answer = home.json(&["run", "tiny", "Hello", "--max-tokens", "1"]);
    assert_eq!(answer["model"], "test/tiny");
}

fn completion(model: &str) -> Value {
    json!({"model": model, "prompt": "Hello", "max_tokens": 1})
}

#[test]
fn a_model_answers_to_names_it_was_given_and_to_unknown_ones() {
    let home = Home::with_model();
    assert!(
        home.fail(&["alias", "add", "coder", "gone"])
            .contains("gone")
    );
    let added = home.json(&["alias", "add", "coder", "tiny"]);
    assert_eq!(added, json!({"name": "coder", "model": "test/tiny"}));
    assert!(
        home.fail(&["alias", "add", "test/tiny", "tiny"])
            .contains("own name")
    );
    let listed = json!({"aliases": [{"name": "coder", "model": "test/tiny"}]});
    assert_eq!(home.json(&["alias", "list"]), listed);

    let served = Served::start(&home, &[]);
    let ask = ["--max-tokens", "1", "--temperature", "0"];
    let answer = home.json(&[&["run", "coder", "Hello"], &ask[..]].concat());
    assert_eq!(answer["model"], "test/tiny");
    assert!(home.fail(&["run", "gpt-4o", "Hello"]).contains("gpt-4o"));
    let models = served.ask("/v1/models");
    let ids: Vec<_> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["test/tiny", "coder"]);
    assert_eq!(served.ask("/v1/models/claude-coder")["id"], "test/tiny");
    for unknown in ["gpt-4o", "other/model"] {
        let shown = served.ask(&format!("/v1/models/{unknown}"));
        assert_eq!(shown["error"]["code"], "model_not_found", "{unknown}");
        let answered = served.post("/v1/completions", &completion(unknown));
        assert_eq!(answered["model"], "test/tiny", "{unknown}");
    }

    home.succeed(&["alias", "remove", "coder"]);
    assert!(home.fail(&["alias", "rm", "coder"]).contains("no alias"));
    let shown = served.ask("/v1/models/claude-coder");
    assert_eq!(shown["error"]["code"], "model_not_found");
    drop(served);
    let strict = Served::start(&home, &["--unknown-models", "refuse"]);
    let refused = strict.post("/v1/completions", &completion("gpt-4o"));
    assert_eq!(refused["error"]["code"], "model_not_found");
}

#[test]
fn keys_are_made_listed_and_removed_while_a_server_runs() {
    let home = Home::with_model();
    let open = Served::start(&home, &[]);
    assert_eq!(open.greeting["needs_api_key"], false);
    let made = home.json(&["keys", "add", "laptop"]);
    let key = made["key"].as_str().unwrap();
    assert_eq!(open.status("/v1/models", None), 401);
    assert_eq!(open.status("/v1/models", Some(key)), 200);
    assert_eq!(open.status("/health", None), 200);
    let listed = home.succeed(&["keys", "list"]);
    assert!(listed.contains("laptop") && !listed.contains(key));
    assert!(home.fail(&["keys", "add", "laptop"]).contains("laptop"));
    // The owner needs none.
    let answer = home.json(&["run", "tiny", "Hello", "--max-tokens", "1"]);
    assert_eq!(answer["model"], "test/tiny");
    home.succeed(&["keys", "remove", "laptop"]);
    assert_eq!(open.status("/v1/models", Some(key)), 401);
    assert!(home.fail(&["keys", "remove", "laptop"]).contains("laptop"));
    drop(open);

    home.succeed(&["keys", "add", "phone"]);
    let closed = Served::start(&home, &["--host", "0.0.0.0"]);
    assert_eq!(closed.greeting["needs_api_key"], true);
    drop(closed);
    fs::write(home.path().join("data/api-keys.json"), "{").unwrap();
    assert!(
        home.fail(&["serve", "--port", "0"])
            .contains("api-keys.json")
    );
}
