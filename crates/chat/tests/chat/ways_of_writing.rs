//! Files of a model's folder as others write them.

use std::fs;

use macmlx_chat::Tokenizer;
use macmlx_test_support::{Source, ways_of_writing};
use serde_json::{Value, json};

use crate::tokenizers::{self, write};

#[test]
fn files_of_a_tokenizer_are_read_however_they_are_written() {
    let source = tokenizers::byte_level();
    let tokenizer = fs::read(source.path().join("tokenizer.json")).unwrap();
    let tokenizer: Value = serde_json::from_slice(&tokenizer).unwrap();
    let files = [
        ("tokenizer.json", tokenizer),
        (
            "tokenizer_config.json",
            json!({"bos_token": "<bos>", "add_bos_token": true}),
        ),
        (
            "special_tokens_map.json",
            json!({"eos_token": {"content": "<|im_end|>"}}),
        ),
        ("generation_config.json", json!({"eos_token_id": [5, 6]})),
        ("config.json", json!({"text_config": {"eos_token_id": 7}})),
    ];
    let read = |odd: Option<(&str, Vec<u8>)>| {
        let folder = tempfile::tempdir().unwrap();
        for (name, document) in &files {
            write(folder.path(), name, document);
        }
        if let Some((name, bytes)) = odd {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let tokenizer = Tokenizer::load(folder.path(), "m").unwrap();
        let ids = tokenizer.encode("hello é", true).unwrap();
        let ends = tokenizer.eos_token_ids().to_vec();
        (ids, ends, tokenizer.bos_token_id())
    };
    let plain = read(None);
    assert_eq!(plain.1.len(), 4);
    for (name, document) in &files {
        for (way, bytes) in ways_of_writing(document, Source::Model) {
            // The tokenizers crate takes no members that it does not know.
            if *name == "tokenizer.json" && bytes.starts_with(b"{\"x-") {
                continue;
            }
            assert_eq!(read(Some((name, bytes))), plain, "{name}, {way}");
        }
    }
    let half = files[0].1.to_string();
    let half = half.replacen("\"vocab\":{", "\"vocab\":{\"\\ud83d\":300,", 1);
    let (ids, ..) = read(Some(("tokenizer.json", half.into())));
    assert_eq!(ids[1..], plain.0[1..]);
}
