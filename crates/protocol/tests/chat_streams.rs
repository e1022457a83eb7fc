//! What clients of chat completions insist on, in every stream and reply of the golden cases.
//!
//! Each rule broke some client of some server: tool calls without an index or an id, a second role,
//! a stream without a finish reason or with two, calls that differ between stream and reply.

#![expect(clippy::unwrap_used, reason = "a broken fixture folder ends the test")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use macmlx_test_support::sse;
use serde_json::{Value, json};

/// Cases of the chat endpoint that were answered.
fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/protocol/openai");
    let mut cases: Vec<PathBuf> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|case| {
            let request = read(&case.join("request.json"));
            let path = request["path"].as_str().unwrap().to_owned();
            path.ends_with("/chat/completions") && case.join("reply.json").exists()
        })
        .collect();
    cases.sort();
    assert!(cases.len() > 10, "{cases:?}");
    cases
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The data of all events.
fn events(case: &Path) -> Vec<String> {
    let text = fs::read_to_string(case.join("stream.txt")).unwrap();
    sse::parse(&text)
        .iter()
        .filter_map(|record| record.data().map(str::to_owned))
        .collect()
}

fn chunks(case: &Path) -> Vec<Value> {
    events(case)
        .iter()
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

#[test]
fn every_stream_ends_with_done_and_every_chunk_says_what_it_is() {
    for case in cases() {
        let events = events(&case);
        assert_eq!(events.last().unwrap(), "[DONE]", "{}", case.display());
        let chunks = chunks(&case);
        assert_eq!(chunks.len(), events.len() - 1);
        for chunk in &chunks {
            assert_eq!(chunk["object"], "chat.completion.chunk");
            for field in ["id", "created", "model", "choices"] {
                assert!(!chunk[field].is_null(), "{}: {chunk}", case.display());
            }
            assert_eq!(chunk["id"], chunks[0]["id"]);
        }
        // Simple loops read the first choice of the first chunk.
        assert!(chunks[0]["choices"][0].is_object(), "{}", case.display());
    }
}

#[test]
fn each_choice_begins_with_its_role_and_ends_once() {
    for case in cases() {
        let mut roles: BTreeMap<u64, u32> = BTreeMap::new();
        let mut ends: BTreeMap<u64, String> = BTreeMap::new();
        for choice in chunks(&case)
            .iter()
            .flat_map(|chunk| chunk["choices"].as_array().unwrap())
        {
            let index = choice["index"].as_u64().unwrap();
            assert!(!ends.contains_key(&index), "{}", case.display());
            let is_first = !roles.contains_key(&index);
            match choice["delta"].get("role") {
                Some(role) => assert_eq!((role, is_first), (&json!("assistant"), true)),
                None => assert!(!is_first, "{}", case.display()),
            }
            *roles.entry(index).or_default() += 1;
            if let Some(reason) = choice["finish_reason"].as_str() {
                ends.insert(index, reason.to_owned());
            }
        }
        assert_eq!(roles.len(), ends.len(), "{}", case.display());
        for choice in read(&case.join("reply.json"))["choices"]
            .as_array()
            .unwrap()
        {
            let index = choice["index"].as_u64().unwrap();
            let reason = choice["finish_reason"].as_str().unwrap();
            assert_eq!(ends[&index], reason, "{}", case.display());
            let message = &choice["message"];
            // A call that a stop sequence cut is none to be answered.
            let mut calls = message["tool_calls"].as_array().into_iter().flatten();
            let is_cut = calls.any(|call| {
                let arguments = call["function"]["arguments"].as_str();
                arguments.is_some_and(|text| serde_json::from_str::<Value>(text).is_err())
            });
            if is_cut {
                assert!(["length", "stop"].contains(&reason), "{}", case.display());
                continue;
            }
            let called = message.get("tool_calls").map(|_| "tool_calls");
            let called = called.or(message.get("function_call").map(|_| "function_call"));
            if reason != "length" {
                assert_eq!(reason, called.unwrap_or("stop"), "{}", case.display());
            }
        }
    }
}

#[test]
fn calls_have_index_id_type_and_name_and_are_those_of_the_reply() {
    let mut seen = 0;
    for case in cases() {
        let mut calls: BTreeMap<(u64, u64), Value> = BTreeMap::new();
        for choice in chunks(&case)
            .iter()
            .flat_map(|chunk| chunk["choices"].as_array().unwrap())
        {
            for call in choice["delta"]["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let key = (
                    choice["index"].as_u64().unwrap(),
                    call["index"].as_u64().unwrap(),
                );
                let Some(begun) = calls.get_mut(&key) else {
                    let mut begun = call.clone();
                    begun.as_object_mut().unwrap().shift_remove("index");
                    calls.insert(key, begun);
                    continue;
                };
                for (kind, field) in [("function", "arguments"), ("custom", "input")] {
                    if let Some(more) = call[kind][field].as_str() {
                        let joined = format!("{}{more}", begun[kind][field].as_str().unwrap());
                        begun[kind][field] = joined.into();
                    }
                }
            }
        }
        let reply = read(&case.join("reply.json"));
        for ((choice, index), call) in calls {
            let whole = &reply["choices"][choice as usize]["message"]["tool_calls"];
            assert_eq!(call, whole[index as usize], "{}", case.display());
            assert!(!call["id"].as_str().unwrap().is_empty());
            let kind = call["type"].as_str().unwrap();
            assert!(!call[kind]["name"].as_str().unwrap().is_empty());
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn usage_is_told_where_it_was_asked_for() {
    for case in cases() {
        let request = read(&case.join("request.json"));
        let wants = request["body"]["stream_options"]["include_usage"] == true;
        let chunks = chunks(&case);
        let (last, others) = chunks.split_last().unwrap();
        if wants {
            assert_eq!(last["choices"], json!([]), "{}", case.display());
            assert_eq!(last["usage"], read(&case.join("reply.json"))["usage"]);
            assert!(others.iter().all(|chunk| chunk["usage"].is_null()));
        } else {
            assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
        }
    }
}
