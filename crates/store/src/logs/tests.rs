use std::fs;

use serde_json::{Map, json};

use super::*;

fn entry(level: Level, category: Category, message: &str) -> NewEntry {
    NewEntry::now(level, category, message, Map::new())
}

fn messages(page: &Page) -> Vec<&str> {
    let entries = page.entries.iter();
    entries.map(|entry| entry.message.as_str()).collect()
}

fn newest(limit: usize) -> Query {
    Query {
        limit,
        ..Query::default()
    }
}

#[test]
fn pages_go_back_in_time() {
    let logs = Logs::default();
    for number in 0..5 {
        logs.note(entry(Level::Info, Category::System, &number.to_string()));
    }
    let page = logs.find(&newest(2));
    assert_eq!(messages(&page), ["3", "4"]);
    assert!(page.has_more);
    let older = Query {
        before: Some(page.entries[0].id),
        ..newest(3)
    };
    let page = logs.find(&older);
    assert_eq!(messages(&page), ["0", "1", "2"]);
    assert!(!page.has_more);
}

#[test]
fn level_category_and_text_narrow_it_down() {
    let logs = Logs::default();
    logs.note(entry(Level::Error, Category::Engine, "Out of memory"));
    logs.note(entry(Level::Debug, Category::Engine, "a chunk"));
    let mut request = entry(Level::Info, Category::Http, "request");
    request.fields = Map::from_iter([
        ("path".into(), json!("/v1/models")),
        ("status".into(), json!(404)),
    ]);
    logs.note(request);
    let found = |query: Query| {
        let page = logs.find(&query);
        messages(&page).join(",")
    };
    let at_least_info = Query {
        level: Some(Level::Info),
        ..newest(9)
    };
    assert_eq!(found(at_least_info), "Out of memory,request");
    let engine = Query {
        category: Some(Category::Engine),
        ..newest(9)
    };
    assert_eq!(found(engine), "Out of memory,a chunk");
    for (search, messages) in [
        ("MEMORY", "Out of memory"),
        ("/V1/", "request"),
        ("404", "request"),
        ("nothing", ""),
    ] {
        let query = Query {
            search: Some(search.into()),
            ..newest(9)
        };
        assert_eq!(found(query), messages, "{search}");
    }
}

#[test]
fn memory_is_bounded() {
    let logs = Logs::default();
    for number in 0..CAPACITY + 10 {
        logs.note(entry(Level::Info, Category::System, &number.to_string()));
    }
    let page = logs.find(&newest(usize::MAX));
    assert_eq!(page.entries.len(), CAPACITY);
    assert_eq!(page.entries[0].message, "10");
}

#[test]
fn what_was_written_is_there_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let logs = Logs::default();
    logs.note(entry(Level::Info, Category::System, "before the folder"));
    logs.keep_in(folder.path(), || 7).unwrap();
    logs.note(entry(Level::Warn, Category::Mcp, "one"));
    logs.note(entry(Level::Info, Category::Mcp, "two"));
    logs.close();
    // A process that was killed in the middle of a line.
    let (_, path) = files_of(folder.path()).remove(0);
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("{\"time\":");
    fs::write(&path, text).unwrap();
    let next = Logs::default();
    next.keep_in(folder.path(), || 7).unwrap();
    next.note(entry(Level::Info, Category::Mcp, "three"));
    let page = next.find(&newest(9));
    assert_eq!(messages(&page), ["one", "two", "three"]);
    assert_eq!(page.entries[0].level, Level::Warn);
}

fn files_of(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), entry.path())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn old_files_go_and_foreign_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "macmlx-2001-01-01.jsonl",
        "macmlx.2001-01-01.log",
        "macmlx.pulse",
        "macmlx-notes.jsonl",
    ] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let logs = Logs::default();
    logs.keep_in(folder.path(), || 2).unwrap();
    logs.note(entry(Level::Info, Category::System, "today"));
    logs.close();
    let names: Vec<String> = files_of(folder.path())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(!names.iter().any(|name| name.contains("2001")));
}

#[test]
fn clearing_leaves_nothing_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let logs = Logs::default();
    logs.keep_in(folder.path(), || 7).unwrap();
    logs.note(entry(Level::Info, Category::System, "secret"));
    logs.clear().unwrap();
    assert!(logs.find(&newest(9)).entries.is_empty());
    assert!(files_of(folder.path()).is_empty());
    logs.note(entry(Level::Info, Category::System, "later"));
    logs.close();
    let (_, path) = files_of(folder.path()).remove(0);
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("later") && !text.contains("secret"));
}

#[test]
fn modules_have_a_category() {
    for (target, category) in [
        ("macmlx_server::guard", Category::Http),
        ("macmlx_server::live", Category::Inference),
        ("macmlx_engine::pool", Category::Engine),
        ("macmlx_store::downloads::job", Category::Download),
        ("macmlx_store::models", Category::System),
        ("macmlx_mcp::pool", Category::Mcp),
        ("macmlx_serverless", Category::System),
    ] {
        assert_eq!(Category::of_target(target), category, "{target}");
    }
}
