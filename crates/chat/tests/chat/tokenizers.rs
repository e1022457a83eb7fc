//! Small tokenizers of the two families, written as model folders.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

pub(crate) const BYTE_LEVEL_SPECIALS: [&str; 6] = [
    "<bos>",
    "<|im_end|>",
    "<|im_start|>",
    "[TOOL_CALLS]",
    "<｜ünïcode｜>",
    "<|python_tag|>",
];
/// Added tokens that are not special.
pub(crate) const BYTE_LEVEL_ADDED: [&str; 4] =
    ["<think>", "</think>", "<tool_call>", "</tool_call>"];

/// Byte-level BPE: all 256 bytes, a few merges, special and added tokens.
pub(crate) fn byte_level() -> TempDir {
    byte_level_with(&BYTE_LEVEL_SPECIALS, &BYTE_LEVEL_ADDED)
}

/// The same with other special and added tokens.
pub(crate) fn byte_level_with(specials: &[&str], others: &[&str]) -> TempDir {
    let alphabet: Vec<char> = byte_alphabet();
    let mut vocab: Vec<String> = alphabet.iter().map(char::to_string).collect();
    let mut merges = Vec::new();
    // "é" is two bytes, "👋" four: merges inside and across them.
    for (left, right) in [
        ("Ġ", "h"),
        ("h", "e"),
        ("l", "l"),
        ("ll", "o"),
        ("ð", "Ł"),
        ("ĭ", "Ġ"),
        ("Ã", "©"),
    ] {
        merges.push(format!("{left} {right}"));
        vocab.push(format!("{left}{right}"));
    }
    let base = vocab.len();
    let added: Vec<Value> = specials
        .iter()
        .map(|text| (text, true))
        .chain(others.iter().map(|text| (text, false)))
        .enumerate()
        .map(|(index, (text, special))| added_token(base + index, text, special))
        .collect();
    folder(&json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "vocab": ids(&vocab), "merges": merges,
        },
    }))
}

/// `SentencePiece` style as in Llama 2: `▁` for space, bytes as fallback, a space put before texts.
pub(crate) fn sentence_piece() -> TempDir {
    sentence_piece_with(&[])
}

/// The same with further special tokens.
pub(crate) fn sentence_piece_with(specials: &[&str]) -> TempDir {
    let mut vocab: Vec<String> = ["<unk>", "<s>", "</s>"].map(String::from).to_vec();
    vocab.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
    vocab.extend(["▁", "h", "e", "l", "o", "é", "▁h", "ll", "▁▁", "1"].map(String::from));
    let base = vocab.len();
    let own = ["<unk>", "<s>", "</s>"].iter().enumerate();
    let further = specials.iter().enumerate();
    let added: Vec<Value> = own
        .chain(further.map(|(index, text)| (base + index, text)))
        .map(|(id, text)| added_token(id, text, true))
        .collect();
    folder(&json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": null,
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true,
            "vocab": ids(&vocab), "merges": ["▁ h", "l l", "▁ ▁"],
        },
    }))
}

pub(crate) fn write(folder: &Path, name: &str, value: &Value) {
    fs::write(folder.join(name), value.to_string()).unwrap();
}

fn folder(tokenizer: &Value) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "tokenizer.json", tokenizer);
    folder
}

fn ids(vocab: &[String]) -> Map<String, Value> {
    vocab
        .iter()
        .enumerate()
        .map(|(id, text)| (text.clone(), id.into()))
        .collect()
}

fn added_token(id: usize, text: &str, special: bool) -> Value {
    json!({
        "id": id, "content": text, "special": special, "single_word": false,
        "lstrip": false, "rstrip": false, "normalized": false,
    })
}

/// Character for each byte, as GPT-2's encoder lists them.
fn byte_alphabet() -> Vec<char> {
    let keeps = |byte: u32| {
        (0x21..=0x7E).contains(&byte)
            || (0xA1..=0xAC).contains(&byte)
            || (0xAE..=0xFF).contains(&byte)
    };
    let mut shifted = 0;
    (0..256)
        .map(|byte| {
            let code = if keeps(byte) {
                byte
            } else {
                shifted += 1;
                255 + shifted
            };
            char::from_u32(code).unwrap()
        })
        .collect()
}
