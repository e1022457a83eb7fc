use macmlx_test_support::{Source, ways_of_writing};
use serde_json::json;

use super::*;

fn servers_with(contents: &str) -> (tempfile::TempDir, McpServers) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    fs::write(home.mcp_file(), contents).unwrap();
    let servers = McpServers::new(&home, &Environment::default());
    (folder, servers)
}

fn written(servers: &McpServers) -> Value {
    serde_json::from_slice(&fs::read(servers.path()).unwrap()).unwrap()
}

#[test]
fn a_missing_or_empty_file_has_no_servers() {
    let folder = tempfile::tempdir().unwrap();
    let servers = McpServers::new(&Home::at(folder.path()), &Environment::default());
    assert_eq!(servers.load().unwrap(), []);
    fs::write(servers.path(), "\n").unwrap();
    assert_eq!(servers.load().unwrap(), []);
    fs::write(servers.path(), "{}").unwrap();
    assert_eq!(servers.load().unwrap(), []);
}

#[test]
fn the_shape_of_desktop_clients() {
    let (_folder, servers) = servers_with(
        r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "server-filesystem", "~/notes"]},
            "api": {"command": "uvx", "env": {"TOKEN": "${TOKEN}", "PORT": 80, "FAST": true},
                "disabled": true, "cwd": "/tmp"},
            "remote": {"url": "https://example.com/mcp", "headers": {}},
            "events": {"type": "sse", "url": "https://example.com/sse"},
            "odd": {"args": []},
            "wrong": {"command": "a", "args": "b"}
        }}"#,
    );
    let loaded = servers.load().unwrap();
    let names: Vec<_> = loaded.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["files", "api", "remote", "events", "odd", "wrong"]);
    assert_eq!(
        loaded[0].kind,
        McpServerKind::Stdio(McpCommand {
            command: "npx".into(),
            args: vec!["-y".into(), "server-filesystem".into(), "~/notes".into()],
            ..McpCommand::default()
        })
    );
    assert!(loaded[0].is_enabled && !loaded[1].is_enabled);
    let McpServerKind::Stdio(api) = &loaded[1].kind else {
        panic!("{:?}", loaded[1]);
    };
    assert_eq!(api.env["TOKEN"], "${TOKEN}");
    assert_eq!((&*api.env["PORT"], &*api.env["FAST"]), ("80", "true"));
    assert_eq!(api.cwd.as_deref(), Some("/tmp"));
    assert!(!format!("{api:?}").contains("${TOKEN}"));
    for (index, reason) in [
        (2, "not supported yet: streamable HTTP"),
        (3, "not supported yet: SSE"),
        (4, "`command` is missing in mcp.json"),
        (5, "`args` in mcp.json is not a list"),
    ] {
        let expected = McpServerKind::Unusable {
            reason: reason.into(),
        };
        assert_eq!(loaded[index].kind, expected);
    }
}

#[test]
fn edits_keep_what_others_wrote() {
    let (_folder, servers) = servers_with(
        r#"{"inputs": [], "mcpServers": {"remote": {"url": "https://x"},
            "a": {"command": "old", "env": {"KEY": "secret", "GONE": "1"}, "icon": "i.png"}}}"#,
    );
    let edit = McpServerEdit {
        command: "new".into(),
        args: vec!["x".into()],
        env: Some(BTreeMap::from([
            ("KEY".to_owned(), None),
            ("MORE".to_owned(), Some("2".to_owned())),
        ])),
        is_enabled: Some(false),
    };
    let server = servers.put("a", edit.clone()).unwrap();
    assert!(!server.is_enabled);
    assert_eq!(
        written(&servers),
        json!({"inputs": [], "mcpServers": {
            "remote": {"url": "https://x"},
            "a": {"command": "new", "args": ["x"], "env": {"KEY": "secret", "MORE": "2"},
                "icon": "i.png", "disabled": true},
        }})
    );
    let enabled = McpServerEdit {
        env: None,
        is_enabled: Some(true),
        ..edit.clone()
    };
    servers.put("a", enabled).unwrap();
    assert_eq!(
        written(&servers)["mcpServers"]["a"],
        json!({"command": "new", "args": ["x"], "env": {"KEY": "secret", "MORE": "2"},
            "icon": "i.png"})
    );
    assert!(servers.remove("remote").unwrap());
    assert!(!servers.remove("remote").unwrap());
    servers.put("b", edit.clone()).unwrap_err();
    for name in ["", " ", "a\nb"] {
        assert!(servers.put(name, edit.clone()).is_err());
    }
    assert_eq!(
        written(&servers)["mcpServers"].as_object().unwrap().len(),
        1
    );
}

#[test]
fn a_file_that_cannot_be_read_is_reported_and_not_written_over() {
    for contents in ["{", "[]", r#"{"mcpServers": []}"#] {
        let (_folder, servers) = servers_with(contents);
        assert!(servers.load().unwrap_err().to_string().contains("mcp.json"));
        let edit = McpServerEdit {
            command: "a".into(),
            ..McpServerEdit::default()
        };
        assert!(servers.put("a", edit).is_err());
        assert!(servers.remove("a").is_err());
        assert_eq!(fs::read_to_string(servers.path()).unwrap(), contents);
    }
}

#[test]
fn commands_are_expanded_where_they_run() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment {
        user_home: Some("/users/ann".into()),
        variables: BTreeMap::from([("TOKEN".to_owned(), "t".to_owned())]),
        ..Environment::default()
    };
    let servers = McpServers::new(&Home::at(folder.path()), &environment);
    let command = McpCommand {
        command: "~/bin/serve".into(),
        args: vec!["${TOKEN}".into()],
        env: BTreeMap::from([("PLACE".to_owned(), "${PLACE}".to_owned())]),
        cwd: None,
    };
    let shell = BTreeMap::from([("PLACE".to_owned(), "here".to_owned())]);
    assert_eq!(
        servers.expand(&command, &shell).unwrap(),
        McpCommand {
            command: "/users/ann/bin/serve".into(),
            args: vec!["t".into()],
            env: BTreeMap::from([("PLACE".to_owned(), "here".to_owned())]),
            cwd: Some("/users/ann".into()),
        }
    );
    let error = servers.expand(&command, &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("`env.PLACE`"), "{error}");
}

#[test]
fn the_file_is_read_however_people_write_it() {
    let document = json!({"mcpServers": {"a": {"command": "x", "args": ["// no comment,"]}}});
    for (way, bytes) in ways_of_writing(&document, Source::Edited) {
        let (_folder, servers) = servers_with("");
        fs::write(servers.path(), bytes).unwrap();
        let loaded = servers.load().unwrap();
        let McpServerKind::Stdio(command) = &loaded[0].kind else {
            panic!("{way}: {loaded:?}");
        };
        assert_eq!(command.args, ["// no comment,"], "{way}");
    }
}

#[test]
fn comments_are_kept_in_a_copy() {
    let before = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, // mine\n}}";
    let (folder, servers) = servers_with(before);
    for is_enabled in [false, true] {
        let edit = McpServerEdit {
            command: "x".into(),
            args: Vec::new(),
            env: None,
            is_enabled: Some(is_enabled),
        };
        servers.put("a", edit).unwrap();
    }
    let texts: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .filter(|text| text.contains("mine"))
        .collect();
    assert_eq!(texts, [before]);
    assert_eq!(written(&servers)["mcpServers"]["a"]["command"], "x");
}
