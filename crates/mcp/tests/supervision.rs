//! The pool over real processes that behave and misbehave. The servers are this program itself.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests fail by panicking, and a server writes to its output"
)]

#[path = "support/fake_server.rs"]
mod fake_server;
mod support;

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::PermissionsExt,
    },
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt;
use libtest_mimic::{Arguments, Trial};
use macmlx_inference::ToolRunEnd;
use macmlx_mcp::{Limits, LoginShell, Pool, PoolChange, PoolSetup, ServerState, ServerStatus};
use macmlx_settings::{Environment, Home, McpServerEdit, McpServers, ToolPolicies};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use support::{Fixture, PATIENCE, call, calling, done, marked, running, server_that};

/// Variable with the file for notes.
const NOTES: &str = "FAKE_NOTES";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", how] => {
            runtime().block_on(serve(how));
            ExitCode::SUCCESS
        }
        ["hold", root] => {
            runtime().block_on(hold(root));
            ExitCode::SUCCESS
        }
        _ => libtest_mimic::run(&Arguments::from_args(), trials()).exit_code(),
    }
}

fn runtime() -> Runtime {
    Runtime::new().unwrap()
}

/// Ourselves as a server.
struct Itself;

impl fake_server::World for Itself {
    fn note(&self, text: &str) {
        if let Some(path) = variable(NOTES) {
            let mut file = fs::File::options()
                .create(true)
                .append(true)
                .open(path)
                .unwrap();
            writeln!(file, "{text}").unwrap();
        }
    }

    fn crash(&self) {
        eprintln!("about to crash");
        std::process::exit(3);
    }

    fn look(&self) -> Value {
        let all: BTreeMap<String, String> = std::env::vars().collect();
        json!({"cwd": std::env::current_dir().unwrap(), "env": all})
    }

    fn spawn(&self) -> Value {
        let child = std::process::Command::new("sleep").arg("600").spawn();
        json!(child.unwrap().id())
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::vars()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value)
}

async fn serve(how: &str) {
    use fake_server::World;
    Itself.note("start");
    match how {
        "mute" => std::future::pending().await,
        "dies" => {
            eprintln!("bad luck");
            std::process::exit(7);
        }
        "stubborn" => {
            let mut asked = signal(SignalKind::terminate()).unwrap();
            tokio::spawn(async move { while asked.recv().await.is_some() {} });
        }
        "garbage" => println!("Welcome!\n\n{{\"not\": \"a message\"}}\nlistening…"),
        _ => {}
    }
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let (input, output) = (input.as_fd(), output.as_fd());
    fake_server::serve(stream(input), stream(output), Arc::new(Itself)).await;
    if how == "stubborn" {
        std::future::pending::<()>().await;
    }
}

fn stream(of: BorrowedFd<'_>) -> tokio::fs::File {
    tokio::fs::File::from_std(of.try_clone_to_owned().unwrap().into())
}

/// Holds a pool until somebody ends us, which is not said to anybody.
async fn hold(root: &str) {
    let home = Home::at(root);
    let environment = Environment::default();
    let servers = Arc::new(McpServers::new(&home, &environment));
    let names: Vec<_> = servers.load().unwrap();
    let pool = Arc::new(Pool::start(PoolSetup {
        servers,
        policies: Arc::new(ToolPolicies::new(&home)),
        shell: Arc::new(LoginShell::asking(None, &environment)),
    }));
    for server in &names {
        running(&pool, &server.name).await;
        done(&pool, &format!("{}__spawn", server.name), json!({})).await;
    }
    println!("ready");
    std::future::pending::<()>().await;
}

fn trials() -> Vec<Trial> {
    macro_rules! trials {
        ($($name:ident),* $(,)?) => {
            vec![$(Trial::test(stringify!($name), || {
                runtime().block_on($name());
                Ok(())
            })),*]
        };
    }
    trials![
        a_server_gets_what_the_file_and_the_login_shell_say,
        garbage_on_standard_output_is_noted_and_skipped,
        a_server_that_never_answers_fails_in_time,
        a_server_that_ends_at_once_is_given_up_after_five_times,
        a_crash_ends_the_call_and_the_server_comes_back,
        changed_tools_are_seen,
        a_cancelled_call_is_cancelled_at_the_server,
        nothing_is_left_once_the_pool_stopped,
        nothing_is_left_once_the_pool_is_dropped,
        nothing_is_left_once_we_are_killed,
        ten_servers_at_once,
        the_file_is_followed,
        what_cannot_run_says_why,
    ]
}

fn server(how: &str, notes: &Path) -> Value {
    json!({"command": this_program(), "args": ["serve", how], "env": {NOTES: notes}})
}

/// Waits until something is true.
async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let waiting = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

fn noted(notes: &Path, text: &str) -> usize {
    let all = fs::read_to_string(notes).unwrap_or_default();
    all.lines().filter(|line| *line == text).count()
}

async fn a_server_gets_what_the_file_and_the_login_shell_say() {
    let mut fixture = Fixture::new();
    let folder = fixture.folder().canonicalize().unwrap();
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    // The command is found only by the PATH that the login shell tells.
    std::os::unix::fs::symlink(this_program(), bin.join("my-server")).unwrap();
    let shell = folder.join("shell");
    let script = format!(
        "#!/bin/sh\necho motd\nPATH={}:$PATH\nexport PATH\neval \"$4\"\n",
        bin.display()
    );
    fs::write(&shell, script).unwrap();
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
    fixture.shell = Some(shell.to_string_lossy().into_owned());
    fixture.environment.variables.extend(
        [("TOKEN", "t0k"), ("HF_TOKEN", "secret")].map(|(name, value)| (name.into(), value.into())),
    );
    fixture.environment.user_home = Some(folder.clone());
    fixture.write(&json!({
        "home": {"command": "my-server", "args": ["serve", "plain"]},
        "place": {"command": "~/bin/my-server", "args": ["serve", "plain"], "cwd": "/",
            "env": {"KEY": "${TOKEN}!", "LANG": "tlh"}},
    }));
    let pool = fixture.pool();
    let status = running(&pool, "home").await;
    let info = status.info.unwrap();
    assert_eq!((&*info.name, &*info.version), ("fake", "1.2.3"));
    assert_eq!(status.tools.len(), 10, "all pages");
    assert_eq!(status.tools[0].full_name, "home__echo");
    assert_eq!(status.tools[0].is_read_only, Some(true));
    assert!(status.pid.is_some() && status.started.is_some());

    let text = json!({"text": "héllo 日本 \u{1F980}\n\"quoted\""});
    assert_eq!(done(&pool, "home__echo", text.clone()).await, text["text"]);
    let look: Value = serde_json::from_str(&done(&pool, "home__look", json!({})).await).unwrap();
    assert_eq!(look["cwd"], json!(folder));
    let path = look["env"]["PATH"].as_str().unwrap();
    assert!(path.starts_with(bin.to_str().unwrap()), "{path}");
    for withheld in ["HF_TOKEN", "TOKEN"] {
        assert_eq!(look["env"][withheld], Value::Null);
    }
    running(&pool, "place").await;
    let look: Value = serde_json::from_str(&done(&pool, "place__look", json!({})).await).unwrap();
    assert_eq!(look["cwd"], "/");
    assert_eq!(look["env"]["KEY"], "t0k!");
    assert_eq!(look["env"]["LANG"], "tlh");
    pool.stop().await;
}

async fn garbage_on_standard_output_is_noted_and_skipped() {
    let fixture = Fixture::new();
    fixture.write(&json!({"loud": server("garbage", &fixture.folder().join("notes"))}));
    let pool = fixture.pool();
    running(&pool, "loud").await;
    let answer = done(&pool, "loud__echo", json!({"text": "still here"})).await;
    assert_eq!(answer, "still here");
    let log = pool.server("loud").unwrap().log_tail;
    for line in ["(standard output) Welcome!", "(standard output) listening…"] {
        assert!(log.iter().any(|logged| logged == line), "{log:?}");
    }
    pool.stop().await;
}

async fn a_server_that_never_answers_fails_in_time() {
    let fixture = Fixture::new();
    let notes = fixture.folder().join("notes");
    fixture.write(&json!({"mute": server("mute", &notes)}));
    let pool = fixture.pool();
    let failed = server_that(&pool, "mute", |status| status.state == ServerState::Failed).await;
    assert_eq!(
        failed.error.as_deref(),
        Some("it did not answer within 10 s")
    );
    assert_eq!(failed.tools, []);
    pool.stop().await;
    assert_eq!(marked(notes.to_str().unwrap()), [0; 0]);
}

async fn a_server_that_ends_at_once_is_given_up_after_five_times() {
    let fixture = Fixture::new();
    let notes = fixture.folder().join("notes");
    fixture.write(&json!({"dies": server("dies", &notes)}));
    let pool = fixture.pool();
    let given_up = |status: &ServerStatus| {
        let error = status.error.as_deref().unwrap_or_default();
        status.state == ServerState::Failed && error.contains("tried 5 times")
    };
    let failed = server_that(&pool, "dies", given_up).await;
    let error = failed.error.unwrap();
    assert!(error.contains("exit status: 7"), "{error}");
    assert!(error.contains("bad luck"), "{error}");
    assert_eq!(failed.log_tail, ["bad luck"]);
    assert_eq!(noted(&notes, "start"), 5);
    let restarted = pool.restart("dies").await.unwrap();
    assert_eq!(restarted.state, ServerState::Starting);
    until("it is tried again", || noted(&notes, "start") > 5).await;
    pool.stop().await;
}

async fn a_crash_ends_the_call_and_the_server_comes_back() {
    let fixture = Fixture::new();
    fixture.write(&json!({"a": server("plain", &fixture.folder().join("notes"))}));
    let pool = fixture.pool();
    let first = running(&pool, "a").await.pid;
    let (end, content) = call(&pool, "a__crash", json!({})).await;
    assert_eq!(end, ToolRunEnd::Failed);
    assert_eq!(content, "The server ended during the call.");
    let failed = server_that(&pool, "a", |status| status.state != ServerState::Running).await;
    assert_eq!(failed.tools, []);
    // A call waits for a server that is on its way back.
    let again = running(&pool, "a").await;
    assert_ne!(again.pid, first);
    assert_eq!(again.error, None);
    assert_eq!(
        done(&pool, "a__echo", json!({"text": "back"})).await,
        "back"
    );
    pool.stop().await;
    assert_eq!(pool.server("a").unwrap().state, ServerState::Stopped);
}

async fn changed_tools_are_seen() {
    let fixture = Fixture::new();
    fixture.write(&json!({"a": server("plain", &fixture.folder().join("notes"))}));
    let pool = fixture.pool();
    running(&pool, "a").await;
    let mut changes = pool.subscribe();
    done(&pool, "a__grow", json!({})).await;
    let grown = |status: &ServerStatus| status.tools.iter().any(|tool| tool.name == "grown");
    server_that(&pool, "a", grown).await;
    let told = PoolChange::Server { name: "a".into() };
    assert_eq!(changes.recv().await, Ok(told));
    pool.stop().await;
}

async fn a_cancelled_call_is_cancelled_at_the_server() {
    let fixture = Fixture::new();
    let notes = fixture.folder().join("notes");
    fixture.write(&json!({"a": server("plain", &notes)}));
    let pool = fixture.pool();
    running(&pool, "a").await;
    let stream = calling(&pool, &[("a__wait", json!({}))], Limits::default()).await;
    let all = stream.for_each(async |_| {});
    tokio::select! {
        () = all => panic!("the call never ends"),
        () = until("it is called", || noted(&notes, "call wait") == 1) => {}
    }
    until("it is cancelled", || noted(&notes, "cancelled") == 1).await;
    pool.stop().await;
}

async fn nothing_is_left_once_the_pool_stopped() {
    let fixture = Fixture::new();
    let notes = fixture.folder().join("notes");
    let mark = notes.to_str().unwrap();
    fixture.write(&json!({
        "plain": server("plain", &notes),
        "stubborn": server("stubborn", &fixture.folder().join("notes-stubborn")),
        // As npx does: a shell that starts the server as its child.
        "wrapped": {"command": "sh", "env": {NOTES: notes},
            "args": ["-c", "\"$0\" serve plain; exit 1", this_program()]},
    }));
    let pool = fixture.pool();
    for name in ["plain", "stubborn", "wrapped"] {
        running(&pool, name).await;
        done(&pool, &format!("{name}__spawn"), json!({})).await;
    }
    assert_eq!(marked(mark).len(), 2 + 2 + 3);
    pool.stop().await;
    assert_eq!(marked(mark), [0; 0]);
    // Each was given the chance to end by itself.
    assert_eq!(noted(&notes, "end of input"), 2);
    for status in pool.servers() {
        assert_eq!(status.state, ServerState::Stopped);
    }
    assert!(pool.restart("plain").await.is_err());
}

async fn nothing_is_left_once_the_pool_is_dropped() {
    let fixture = Fixture::new();
    let notes = fixture.folder().join("notes");
    let mark = notes.to_str().unwrap().to_owned();
    fixture.write(&json!({"a": server("plain", &notes), "b": server("stubborn", &notes)}));
    let held = |pool: Arc<Pool>| async move {
        for name in ["a", "b"] {
            running(&pool, name).await;
            done(&pool, &format!("{name}__spawn"), json!({})).await;
        }
        pool
    };
    drop(held(fixture.pool()).await);
    until("they end in the background", || marked(&mark).is_empty()).await;

    // A runtime that ends leaves no time to be kind.
    let pool = fixture.home.clone();
    let environment = fixture.environment.clone();
    std::thread::spawn(move || {
        let short = runtime();
        let pool = short.block_on(async {
            held(Arc::new(Pool::start(PoolSetup {
                servers: Arc::new(McpServers::new(&pool, &environment)),
                policies: Arc::new(ToolPolicies::new(&pool)),
                shell: Arc::new(LoginShell::asking(None, &environment)),
            })))
            .await
        });
        drop(short);
        drop(pool);
    })
    .join()
    .unwrap();
    until("they end at once", || marked(&mark).is_empty()).await;
}

async fn nothing_is_left_once_we_are_killed() {
    let fixture = Fixture::new();
    let notes = fixture.folder().join("notes");
    let mark = notes.to_str().unwrap();
    fixture.write(&json!({"a": server("plain", &notes), "b": server("stubborn", &notes)}));
    let mut holder = Command::new(this_program())
        .args(["hold", fixture.home.root().to_str().unwrap()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    assert_eq!(marked(mark).len(), 4);
    holder.kill().await.unwrap();
    until("all that it started has ended", || marked(mark).is_empty()).await;
}

async fn ten_servers_at_once() {
    let fixture = Fixture::new();
    let notes = fixture.folder().join("notes");
    let servers: serde_json::Map<_, _> = (0..10)
        .map(|index| (format!("s{index}"), server("plain", &notes)))
        .collect();
    fixture.write(&Value::Object(servers));
    let pool = fixture.pool();
    pool.reload().await;
    let calls = (0..10).map(|index| {
        let pool = pool.clone();
        async move {
            running(&pool, &format!("s{index}")).await;
            let text = json!({"text": index.to_string()});
            let name = format!("s{index}__echo");
            // Policies are written one after the other.
            (index, call(&pool, &name, text).await)
        }
    });
    for (index, (end, content)) in futures::future::join_all(calls).await {
        assert_eq!((end, content), (ToolRunEnd::Done, index.to_string()));
    }
    pool.stop().await;
    assert_eq!(marked(notes.to_str().unwrap()), [0; 0]);
}

async fn the_file_is_followed() {
    let fixture = Fixture::new();
    let notes = fixture.folder().join("notes");
    fixture.write(&json!({"a": server("plain", &notes)}));
    let pool = fixture.pool();
    let first = running(&pool, "a").await.pid;
    fixture.write(&json!({"a": server("plain", &notes), "b": server("plain", &notes)}));
    running(&pool, "b").await;
    assert_eq!(pool.server("a").unwrap().pid, first, "left alone");

    fs::write(fixture.home.mcp_file(), "{").unwrap();
    until("the file is found broken", || pool.error().is_some()).await;
    assert_eq!(pool.server("a").unwrap().pid, first, "goes on");
    let edit = McpServerEdit {
        command: "x".into(),
        ..McpServerEdit::default()
    };
    assert!(pool.put("c", edit.clone()).await.is_err());
    assert_eq!(fs::read_to_string(fixture.home.mcp_file()).unwrap(), "{");

    fixture.write(&json!({"b": server("plain", &notes)}));
    until("the file is found mended", || pool.error().is_none()).await;
    assert!(pool.server("a").is_none());
    let disabled = McpServerEdit {
        is_enabled: Some(false),
        ..edit
    };
    let status = pool.put("b", disabled).await.unwrap();
    assert_eq!(status.state, ServerState::Disabled);
    pool.remove("b").await.unwrap();
    assert!(pool.remove("b").await.is_err());
    assert_eq!(pool.servers(), []);
    until("both have ended", || {
        marked(notes.to_str().unwrap()).is_empty()
    })
    .await;
}

async fn what_cannot_run_says_why() {
    let fixture = Fixture::new();
    fixture.write(&json!({
        "remote": {"url": "https://example.com/mcp"},
        "missing": {"command": "no-such-program-anywhere"},
        "folder": {"command": this_program(), "cwd": "/no/such/folder"},
        "unset": {"command": "x", "env": {"KEY": "${NO_SUCH_VARIABLE}"}},
        "shy": {"command": "cat"},
    }));
    let pool = fixture.pool();
    for (name, words) in [
        ("remote", "not supported yet: streamable HTTP"),
        ("missing", "`no-such-program-anywhere` is not installed"),
        ("folder", "its folder /no/such/folder does not exist"),
        ("unset", "`${NO_SUCH_VARIABLE}` in `env.KEY` is not set"),
        ("shy", "it did not answer within 10 s"),
    ] {
        let failed = server_that(&pool, name, |status| status.state == ServerState::Failed).await;
        let error = failed.error.unwrap();
        assert!(error.contains(words), "{name}: {error}");
    }
    pool.stop().await;
}
