use std::thread;

use serde_json::{Value, json};

use super::*;

/// As macMLX of old writes it: keys in order, times in seconds, UUIDs in upper case.
const OLD: &str = r#"{
  "createdAt" : 1776433496.1234569,
  "id" : "0B8A4F0C-6E3D-4C53-9A55-1D3C0D5C8F10",
  "messages" : [
    {
      "content" : "What is in this picture?",
      "id" : "6C1D5E9E-7E1B-4C0E-8D0B-6F9F1B1A2C3D",
      "images" : [
        {
          "fileURL" : "file:\/\/\/Users\/ann\/.mac-mlx\/conversations\/0B8A4F0C-6E3D-4C53-9A55-1D3C0D5C8F10\/images\/A.jpg",
          "mimeType" : "image\/jpeg"
        }
      ],
      "role" : "user",
      "spoken" : true,
      "timestamp" : 1776433497
    },
    {
      "content" : "A cat on a windowsill.",
      "id" : "9F2B3C4D-5E6F-4A7B-8C9D-0E1F2A3B4C5D",
      "images" : [

      ],
      "role" : "assistant",
      "timestamp" : 1776433501.5,
      "tokenCount" : 7
    }
  ],
  "modelID" : "Qwen3-VL-4B-Instruct-4bit",
  "pinned" : {
    "order" : 3
  },
  "systemPrompt" : "You are a helpful assistant.",
  "title" : "What is in this picture?",
  "updatedAt" : 1776433502.25
}"#;

const OLD_ID: &str = "0B8A4F0C-6E3D-4C53-9A55-1D3C0D5C8F10";

/// As the first versions wrote it.
const FIRST: &str = r#"{
  "createdAt" : "2026-04-17T12:34:56Z",
  "id" : "11111111-2222-4333-8444-555555555555",
  "messages" : [
    {
      "content" : "Hello",
      "id" : "66666666-7777-4888-8999-AAAAAAAAAAAA",
      "role" : "user",
      "timestamp" : "2026-04-17T12:34:56.789Z"
    }
  ],
  "systemPrompt" : "",
  "title" : "Hello",
  "updatedAt" : "2026-04-17T12:34:57Z"
}"#;

const FIRST_ID: &str = "11111111-2222-4333-8444-555555555555";

struct Place {
    folder: tempfile::TempDir,
    conversations: Conversations,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            conversations: Conversations::new(folder.path().join("conversations")),
            folder,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("conversations").join(name)
    }

    fn write(&self, name: &str, contents: &str) {
        fs::create_dir_all(self.file("")).unwrap();
        fs::write(self.file(name), contents).unwrap();
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.file(name)).unwrap()).unwrap()
    }

    fn edit(&self, id: Uuid, edit: impl FnOnce(&mut Conversation)) -> Conversation {
        self.conversations
            .edit(id, |conversation| {
                edit(conversation);
                Ok::<_, Error>(())
            })
            .unwrap()
    }

    fn titles(&self, search: &str) -> Vec<String> {
        let list = self.conversations.list(Some(search)).unwrap();
        list.conversations
            .into_iter()
            .map(|summary| summary.title)
            .collect()
    }

    fn add(&self, title: &str, text: &str) -> Uuid {
        let mut conversation = Conversation::new();
        conversation.title = title.into();
        conversation.messages.push(Message::new(Role::User, text));
        self.conversations.create(&conversation).unwrap();
        conversation.id
    }
}

fn id(text: &str) -> Uuid {
    Uuid::parse_str(text).unwrap()
}

#[test]
fn a_file_of_old_is_read_and_keeps_all_that_it_holds() {
    let place = Place::new();
    let name = format!("{OLD_ID}.json");
    place.write(&name, OLD);
    let read = place.conversations.get(id(OLD_ID)).unwrap();
    assert_eq!(read.messages.len(), 2);
    assert_eq!(read.messages[0].images[0].mime_type, "image/jpeg");
    assert_eq!(read.messages[1].token_count, Some(7));
    assert_eq!(read.created_at.as_second(), 1_776_433_496);
    place.edit(id(OLD_ID), |conversation| conversation.title = "Cat".into());
    let mut written = place.json(&name);
    let mut expected: Value = serde_json::from_str(OLD).unwrap();
    let updated = written["updatedAt"].take();
    assert!(updated.as_f64().unwrap() > 1_776_433_502.25);
    expected["updatedAt"] = Value::Null;
    expected["title"] = json!("Cat");
    // Numbers are doubles there: a whole one may gain a fraction of zero.
    expected["messages"][0]["timestamp"] = json!(1_776_433_497.0);
    assert_eq!(written, expected);
    assert_eq!(fs::read_dir(place.file("")).unwrap().count(), 1);
}

#[test]
fn times_as_the_first_versions_wrote_them() {
    let place = Place::new();
    place.write(&format!("{FIRST_ID}.json"), FIRST);
    let read = place.conversations.get(id(FIRST_ID)).unwrap();
    assert_eq!(read.created_at.as_second(), 1_776_429_296);
    assert_eq!(read.messages[0].timestamp.subsec_millisecond(), 789);
    place.edit(id(FIRST_ID), |_| {});
    let written = place.json(&format!("{FIRST_ID}.json"));
    assert_eq!(written["createdAt"], json!(1_776_429_296.0));
}

#[test]
fn what_we_write_has_all_that_the_old_reader_asks_for() {
    let place = Place::new();
    let mut conversation = Conversation::new();
    let mut answer = Message::new(Role::Assistant, "Hi");
    answer.reasoning = Some("A greeting.".into());
    answer.finish_reason = Some(Ending::Stop);
    answer.tool_calls.push(ToolCall {
        id: "call_1".into(),
        name: "time__now".into(),
        arguments: "{}".into(),
        server: Some("time".into()),
        state: CallState::Done,
        result: Some("noon".into()),
        duration_ms: Some(3),
        other: serde_json::Map::new(),
    });
    conversation
        .messages
        .push(Message::new(Role::User, "Hello"));
    conversation.messages.push(answer);
    place.conversations.create(&conversation).unwrap();
    let name = conversation.id.hyphenated().to_string().to_uppercase();
    let written = place.json(&format!("{name}.json"));
    assert_eq!(written["id"], json!(name));
    assert!(written["createdAt"].is_f64() && written["updatedAt"].is_f64());
    for key in ["title", "systemPrompt"] {
        assert!(written[key].is_string(), "{key}");
    }
    for message in written["messages"].as_array().unwrap() {
        assert!(message["timestamp"].is_f64() && message["images"].is_array());
        let id = message["id"].as_str().unwrap();
        assert_eq!(id, id.to_uppercase());
    }
    let mut keys: Vec<&String> = written["messages"][0].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["content", "id", "images", "role", "timestamp"]);
    assert_eq!(
        place.conversations.get(conversation.id).unwrap(),
        conversation
    );
}

#[test]
fn damage_is_reported_and_the_rest_is_listed() {
    let place = Place::new();
    place.add("Kept", "hello");
    place.write(&format!("{OLD_ID}.json"), "{ not json");
    place.write("notes.json", "{}");
    place.write(&format!("{FIRST_ID}.txt"), "nothing");
    let list = place.conversations.list(None).unwrap();
    assert_eq!(list.conversations.len(), 1);
    assert_eq!(list.damaged.len(), 1);
    assert_eq!(list.damaged[0].path, place.file(&format!("{OLD_ID}.json")));
    let refused = place
        .conversations
        .edit(id(OLD_ID), |_| Ok::<_, Error>(()))
        .unwrap_err();
    assert!(matches!(refused, Error::Unreadable { .. }));
    let text = fs::read_to_string(place.file(&format!("{OLD_ID}.json"))).unwrap();
    assert_eq!(text, "{ not json");
}

#[test]
fn the_newest_comes_first_and_a_change_makes_it_newest() {
    let place = Place::new();
    let one = place.add("One", "a");
    place.add("Two", "b");
    assert_eq!(place.titles(""), ["Two", "One"]);
    place.edit(one, |conversation| conversation.title = "One again".into());
    assert_eq!(place.titles(""), ["One again", "Two"]);
}

#[test]
fn only_files_that_changed_are_read_again() {
    let place = Place::new();
    place.add("One", "a");
    let name = format!("{OLD_ID}.json");
    place.write(&name, OLD);
    assert_eq!(place.titles("").len(), 2);
    // Same size and time, other contents, same file: it is not opened.
    let modified = fs::metadata(place.file(&name)).unwrap().modified().unwrap();
    fs::write(
        place.file(&name),
        OLD.replace("\"title\" : \"What", "\"title\" : \"Who!"),
    )
    .unwrap();
    let file = fs::File::options()
        .append(true)
        .open(place.file(&name))
        .unwrap();
    file.set_modified(modified).unwrap();
    assert!(
        place
            .titles("")
            .contains(&"What is in this picture?".to_owned())
    );
    file.set_modified(modified + std::time::Duration::from_secs(1))
        .unwrap();
    assert!(
        place
            .titles("")
            .contains(&"Who! is in this picture?".to_owned())
    );
    fs::remove_file(place.file(&name)).unwrap();
    assert_eq!(place.titles(""), ["One"]);
}

#[test]
fn search_looks_into_titles_and_messages() {
    let place = Place::new();
    place.add("Holidays", "Where is the SEA warm in May?");
    place.add("Recipes", "How do I cook 海带?");
    assert_eq!(place.titles("sea holi"), ["Holidays"]);
    assert_eq!(place.titles("海带"), ["Recipes"]);
    assert_eq!(place.titles("sea cook"), Vec::<String>::new());
    assert_eq!(place.titles("  ").len(), 2);
}

#[test]
fn titles_and_previews_are_short() {
    let mut conversation = Conversation::new();
    assert!(!conversation.take_title());
    let question = format!("  Explain\n\nattention {}", "very ".repeat(100));
    conversation
        .messages
        .push(Message::new(Role::User, question));
    assert!(conversation.take_title());
    assert_eq!(
        conversation.title,
        "Explain attention very very very very ve…"
    );
    assert!(!conversation.take_title());
    conversation
        .messages
        .push(Message::new(Role::Assistant, ""));
    assert!(conversation.preview().starts_with("Explain attention"));
    assert_eq!(conversation.preview().chars().count(), 121);
    let mut wide = Conversation::new();
    wide.messages
        .push(Message::new(Role::User, "好".repeat(50)));
    wide.take_title();
    assert_eq!(wide.title, "好".repeat(40) + "…");
}

#[test]
fn what_is_removed_takes_its_images_along() {
    let place = Place::new();
    place.write(&format!("{OLD_ID}.json"), OLD);
    place.write(&format!("{FIRST_ID}.json"), FIRST);
    let images = place.file(OLD_ID).join("images");
    fs::create_dir_all(&images).unwrap();
    fs::write(images.join("A.jpg"), "bytes").unwrap();
    place.conversations.remove(id(OLD_ID)).unwrap();
    assert!(!place.file(OLD_ID).exists());
    assert_eq!(place.titles(""), ["Hello"]);
    for gone in [
        place.conversations.remove(id(OLD_ID)),
        place.conversations.get(id(OLD_ID)).map(|_| ()),
    ] {
        assert!(matches!(gone, Err(Error::NotFound { .. })));
    }
}

#[test]
fn a_name_in_lower_case_stays_the_same_file() {
    let place = Place::new();
    let name = format!("{}.json", OLD_ID.to_lowercase());
    place.write(&name, OLD);
    place.edit(id(OLD_ID), |conversation| conversation.title = "Low".into());
    assert_eq!(place.json(&name)["title"], "Low");
    assert_eq!(place.titles(""), ["Low"]);
}

#[test]
fn edits_at_the_same_time_all_count() {
    let place = Place::new();
    let id = place.add("Busy", "a");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    place.edit(id, |conversation| {
                        conversation.messages.push(Message::new(Role::User, "b"));
                    });
                }
            });
        }
    });
    assert_eq!(place.conversations.get(id).unwrap().messages.len(), 41);
}

#[test]
fn an_edit_that_refuses_changes_nothing() {
    let place = Place::new();
    let id = place.add("Same", "a");
    let before = fs::read(place.file(&format!("{}.json", names(id)[0]))).unwrap();
    let refused = place.conversations.edit(id, |conversation| {
        conversation.title = "Other".into();
        Err(Error::Exists { id })
    });
    assert!(matches!(refused, Err(Error::Exists { .. })));
    let after = fs::read(place.file(&format!("{}.json", names(id)[0]))).unwrap();
    assert_eq!(before, after);
}
