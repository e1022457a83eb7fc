//! The pool and the loop over servers as people run them.
//!
//! `cargo xtask test` installs them (tests/mcp) and sets these variables; by hand:
//! `MACMLX_MCP_PACKAGES` is the `node_modules` of tests/mcp/package.json, `MACMLX_MCP_NODE` the
//! `node` program, `MACMLX_MCP_PYTHON` the Python of an environment with tests/mcp/requirements.txt.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod support;

use std::{fs, path::PathBuf, time::Duration};

use futures::StreamExt;
use macmlx_inference::{GenerationEvent, ToolRun, ToolRunEnd};
use macmlx_mcp::Limits;
use serde_json::{Value, json};

use support::{Fixture, call, calling, done, marked, running};

fn variable(name: &str) -> String {
    let found = std::env::vars().find(|(known, _)| known == name);
    let (_, value) = found.unwrap_or_else(|| {
        panic!("{name} is not set: `cargo xtask test` sets it, see the head of this file")
    });
    value
}

/// A server of npm, as `npx` would start it.
fn node(package: &str, args: &[&str], mark: &str) -> Value {
    let folder = PathBuf::from(variable("MACMLX_MCP_PACKAGES")).join(package);
    let manifest = fs::read(folder.join("package.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let (_, program) = manifest["bin"].as_object().unwrap().iter().next().unwrap();
    let program = folder.join(program.as_str().unwrap());
    let mut all = vec![json!(program)];
    all.extend(args.iter().map(|arg| json!(arg)));
    json!({"command": variable("MACMLX_MCP_NODE"), "args": all, "env": {"MARK": mark}})
}

fn everything(mark: &str) -> Value {
    node("@modelcontextprotocol/server-everything", &["stdio"], mark)
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_the_reference_server_has() {
    let fixture = Fixture::new();
    let mark = fixture.folder().to_string_lossy().into_owned();
    fixture.write(&json!({"everything": everything(&mark)}));
    let pool = fixture.pool();
    let status = running(&pool, "everything").await;
    assert!(status.info.is_some());
    let names: Vec<_> = status.tools.iter().map(|tool| &*tool.name).collect();
    assert!(names.contains(&"echo"), "{names:?}");

    let text = "Grüße, 世界 \u{1F30D} \"\\\"";
    let echoed = done(&pool, "everything__echo", json!({"message": text})).await;
    assert!(echoed.contains(text), "{echoed}");
    let sum = done(&pool, "everything__get-sum", json!({"a": 20, "b": 22})).await;
    assert!(sum.contains("42"), "{sum}");
    let image = done(&pool, "everything__get-tiny-image", json!({})).await;
    assert!(image.contains("[image image/png, "), "{image}");
    let structured = json!({"location": "New York"});
    let weather = done(&pool, "everything__get-structured-content", structured).await;
    assert!(weather.contains("temperature"), "{weather}");

    let (end, content) = call(&pool, "everything__get-sum", json!({"a": "x"})).await;
    assert_eq!(end, ToolRunEnd::Failed);
    assert!(!content.is_empty());
    pool.stop().await;
    assert_eq!(marked(&mark), [0; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_call_lives_by_its_progress_and_dies_by_its_cancellation() {
    let fixture = Fixture::new();
    let mark = fixture.folder().to_string_lossy().into_owned();
    fixture.write(&json!({"everything": everything(&mark)}));
    let pool = fixture.pool();
    running(&pool, "everything").await;
    let name = "everything__trigger-long-running-operation";
    let limits = Limits {
        call_time: Duration::from_secs(2),
        ..Limits::default()
    };
    // A sign of progress each second, an answer after four.
    let long = json!({"duration": 4, "steps": 4});
    let stream = calling(&pool, &[(name, long)], limits).await;
    let events: Vec<_> = stream.map(Result::unwrap).collect().await;
    let ended = events.iter().find_map(|event| match event {
        GenerationEvent::ToolRun {
            run:
                ToolRun::Ended {
                    end,
                    content,
                    duration,
                },
            ..
        } => Some((*end, content.clone(), *duration)),
        _ => None,
    });
    let (end, content, duration) = ended.unwrap();
    assert_eq!(end, ToolRunEnd::Done, "{content}");
    assert!(duration > limits.call_time, "{duration:?}");
    // No sign for longer than a call may be silent.
    let silent = json!({"duration": 60, "steps": 1});
    let stream = calling(&pool, &[(name, silent)], limits).await;
    let events: Vec<_> = stream.map(Result::unwrap).collect().await;
    let failed = events.iter().any(|event| {
        matches!(event, GenerationEvent::ToolRun {
            run: ToolRun::Ended { end: ToolRunEnd::Failed, content, .. }, ..
        } if content.contains("did not answer within 2 s"))
    });
    assert!(failed, "{events:?}");
    // Stopped by whoever asked; the server goes on with the next call.
    let silent = json!({"duration": 60, "steps": 1});
    let mut stream = calling(&pool, &[(name, silent)], Limits::default()).await;
    let until_it_runs = async {
        while let Some(event) = stream.next().await {
            if let GenerationEvent::ToolRun {
                run: ToolRun::Began { .. },
                ..
            } = event.unwrap()
            {
                break;
            }
        }
    };
    until_it_runs.await;
    drop(stream);
    let echoed = done(&pool, "everything__echo", json!({"message": "here"})).await;
    assert!(echoed.contains("here"));
    pool.stop().await;
    assert_eq!(marked(&mark), [0; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_and_written_where_it_is_allowed() {
    let fixture = Fixture::new();
    let folder = fixture.folder().canonicalize().unwrap();
    let notes = folder.join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("héllo.txt"), "日本語").unwrap();
    let mark = folder.to_string_lossy().into_owned();
    let package = "@modelcontextprotocol/server-filesystem";
    fixture.write(&json!({"files": node(package, &[notes.to_str().unwrap()], &mark)}));
    let pool = fixture.pool();
    let status = running(&pool, "files").await;
    let read_only = status
        .tools
        .iter()
        .filter(|tool| tool.is_read_only == Some(true));
    assert!(read_only.count() > 0);
    let path = notes.join("héllo.txt");
    let read = done(&pool, "files__read_text_file", json!({"path": path})).await;
    assert!(read.contains("日本語"), "{read}");
    let path = notes.join("new.txt");
    let write = json!({"path": path, "content": "written"});
    done(&pool, "files__write_file", write).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "written");
    let outside = json!({"path": folder.join("home/settings.json")});
    let (end, content) = call(&pool, "files__read_text_file", outside).await;
    assert_eq!(end, ToolRunEnd::Failed, "{content}");
    pool.stop().await;
    assert_eq!(marked(&mark), [0; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_python_and_ten_servers_at_once() {
    let fixture = Fixture::new();
    let mark = fixture.folder().to_string_lossy().into_owned();
    let time = json!({"command": variable("MACMLX_MCP_PYTHON"),
        "args": ["-m", "mcp_server_time", "--local-timezone", "Europe/Berlin"],
        "env": {"MARK": mark}});
    let mut servers = serde_json::Map::from_iter([("time".to_owned(), time)]);
    for index in 0..9 {
        servers.insert(format!("e{index}"), everything(&mark));
    }
    fixture.write(&Value::Object(servers));
    let pool = fixture.pool();
    running(&pool, "time").await;
    let arguments = json!({"source_timezone": "Europe/Berlin", "time": "12:00",
        "target_timezone": "Asia/Tokyo"});
    let converted = done(&pool, "time__convert_time", arguments).await;
    assert!(converted.contains("Asia/Tokyo"), "{converted}");
    let (end, _) = call(&pool, "time__convert_time", json!({"time": "12:00"})).await;
    assert_eq!(end, ToolRunEnd::Failed);
    for index in 0..9 {
        let server = format!("e{index}");
        running(&pool, &server).await;
        let name = format!("{server}__echo");
        let echoed = done(&pool, &name, json!({"message": server})).await;
        assert!(echoed.contains(&server), "{echoed}");
    }
    pool.stop().await;
    assert_eq!(marked(&mark), [0; 0]);
}
