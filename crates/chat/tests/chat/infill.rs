//! Prompts with a gap, in the order and the tokens of each family.

use macmlx_chat::{ChatModel, Rendered};
use macmlx_inference::{InferenceError, InfillFile, InfillPrompt, Prompt, ReasoningOptions};
use serde_json::json;

use crate::tokenizers;

/// A byte-level model whose added tokens are these.
fn model(added: &[&str]) -> ChatModel {
    let folder = tokenizers::byte_level_with(&["<bos>", "<|im_end|>"], added);
    ChatModel::load(folder.path(), "org/model").unwrap()
}

fn gap(prefix: &str, suffix: &str) -> InfillPrompt {
    InfillPrompt {
        prefix: prefix.into(),
        suffix: suffix.into(),
        param: "input_suffix".into(),
        ..InfillPrompt::default()
    }
}

fn filled(model: &ChatModel, gap: InfillPrompt) -> Result<Rendered, InferenceError> {
    model.prompt(&Prompt::Infill(gap), &ReasoningOptions::default())
}

/// Tokens of the prompt and of its end, as the vocabulary spells them.
fn text(model: &ChatModel, gap: InfillPrompt) -> (String, Vec<String>) {
    let rendered = filled(model, gap).unwrap();
    let tokenizer = model.tokenizer();
    let spelled = |id: &u32| tokenizer.detokenize(&[*id]);
    let mut ends: Vec<_> = rendered.end_tokens.iter().map(spelled).collect();
    ends.sort();
    assert_eq!(rendered.text, tokenizer.detokenize(&rendered.tokens));
    (rendered.text, ends)
}

#[test]
fn each_family_has_its_own_order() {
    for (added, expected, pad) in [
        (
            &[
                "<|fim_prefix|>",
                "<|fim_suffix|>",
                "<|fim_middle|>",
                "<|fim_pad|>",
            ][..],
            "<|fim_prefix|>a<|fim_suffix|>z<|fim_middle|>m",
            Some("<|fim_pad|>"),
        ),
        (
            &["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>"],
            "<fim_prefix>a<fim_suffix>z<fim_middle>m",
            Some("<fim_pad>"),
        ),
        (
            &["<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<fim-pad>"],
            "<fim-prefix>a<fim-suffix>z<fim-middle>m",
            Some("<fim-pad>"),
        ),
        (
            &["<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"],
            "<[fim-suffix]>z<[fim-prefix]>a<[fim-middle]>m",
            None,
        ),
        (
            &["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"],
            "<｜fim▁begin｜>a<｜fim▁hole｜>z<｜fim▁end｜>m",
            None,
        ),
        (
            &["▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"],
            "▁<PRE>a▁<SUF>z▁<MID>m",
            Some("▁<EOT>"),
        ),
        (
            &["<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"],
            "<|code_prefix|>a<|code_suffix|>z<|code_middle|>m",
            None,
        ),
        (
            &["<PRE>", "<SUF>", "<MID>", "<EOT>"],
            "<PRE>a<SUF>z<MID>m",
            Some("<EOT>"),
        ),
        (
            &["<|prefix|>", "<|suffix|>", "<|middle|>"],
            "<|prefix|>a<|suffix|>z<|middle|>m",
            None,
        ),
        (&["[PREFIX]", "[SUFFIX]"], "[SUFFIX]z[PREFIX]am", None),
    ] {
        let model = model(added);
        let begun = InfillPrompt {
            start: "m".into(),
            ..gap("a", "z")
        };
        let (text, ends) = text(&model, begun);
        assert_eq!(text, expected);
        let mut own: Vec<&str> = added.to_vec();
        own.sort_unstable();
        assert_eq!(ends, own, "every token of the family ends the gap");
        assert!(pad.is_none_or(|pad| ends.iter().any(|end| end == pad)));
        assert!(model.traits().fills_in);
    }
}

#[test]
fn a_name_tells_families_of_the_same_tokens_apart() {
    let tokens = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<filename>"];
    let folder = tokenizers::byte_level_with(&["<bos>", "<|im_end|>"], &tokens);
    for (id, expected) in [
        (
            "JetBrains/Mellum-4b-base",
            "<fim_suffix>z<fim_prefix>a<fim_middle>",
        ),
        (
            "bigcode/starcoder2-3b",
            "<fim_prefix>a<fim_suffix>z<fim_middle>",
        ),
    ] {
        let model = ChatModel::load(folder.path(), id).unwrap();
        assert_eq!(text(&model, gap("a", "z")).0, expected, "{id}");
    }
}

#[test]
fn files_may_name_the_tokens() {
    let named = |config: serde_json::Value, added: &[&str]| {
        let folder = tokenizers::byte_level_with(&["<bos>", "<|im_end|>"], added);
        tokenizers::write(folder.path(), "tokenizer_config.json", &config);
        ChatModel::load(folder.path(), "org/model").unwrap()
    };
    let own = json!({
        "prefix_token": "<before>", "suffix_token": {"content": "<after>"},
        "middle_token": "<gap>", "fim_pad_token": "<pad>", "fim_sep_token": "<other>",
    });
    let tokens = ["<before>", "<after>", "<gap>", "<pad>", "<other>"];
    let model = named(own.clone(), &tokens);
    let (prompt, ends) = text(&model, gap("a", "z"));
    assert_eq!(prompt, "<before>a<after>z<gap>");
    assert_eq!(ends, ["<after>", "<before>", "<gap>", "<other>", "<pad>"]);
    let file = InfillFile {
        name: "a.py".into(),
        text: "A".into(),
    };
    let beside = InfillPrompt {
        files: vec![file],
        ..gap("a", "z")
    };
    let (prompt, _) = text(&model, beside);
    assert_eq!(prompt, "<other>a.py\nA<other>file\n<before>a<after>z<gap>");
    // What the files do not say is as in the family.
    let seed = ["<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"];
    let of_family = json!({"prefix_token": seed[0], "suffix_token": seed[1]});
    let (prompt, _) = text(&named(of_family, &seed), gap("a", "z"));
    assert_eq!(prompt, "<[fim-suffix]>z<[fim-prefix]>a<[fim-middle]>");
    // Names of tokens that the vocabulary has not are no names.
    let fim = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"];
    let (prompt, _) = text(&named(own.clone(), &fim), gap("a", "z"));
    assert_eq!(prompt, "<|fim_prefix|>a<|fim_suffix|>z<|fim_middle|>");
    assert!(!named(own, &[]).traits().fills_in);
}

#[test]
fn other_files_come_first() {
    let with_file = || InfillPrompt {
        files: vec![
            InfillFile {
                name: "a.py".into(),
                text: "A = 1".into(),
            },
            InfillFile {
                name: String::new(),
                text: "B = 2\n".into(),
            },
        ],
        ..gap("a", "z")
    };
    let fim = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"];
    let gap = "<|fim_prefix|>a<|fim_suffix|>z<|fim_middle|>";
    for (others, files) in [
        (
            &["<|repo_name|>", "<|file_sep|>"][..],
            "<|repo_name|>repository\n<|file_sep|>a.py\nA = 1<|file_sep|>file\nB = 2\n\
             <|file_sep|>file\n",
        ),
        (
            &["<|file_separator|>"],
            "<|file_separator|>a.py\nA = 1<|file_separator|>file\nB = 2\n\
             <|file_separator|>file\n",
        ),
        (&[], "\n\n--- a.py ---\n\nA = 1\n\n--- file ---\n\nB = 2\n"),
    ] {
        let model = model(&[&fim[..], others].concat());
        let (text, ends) = text(&model, with_file());
        assert_eq!(text, format!("{files}{gap}"));
        assert!(
            others
                .iter()
                .all(|other| ends.iter().any(|end| end == other))
        );
    }
}

#[test]
fn a_text_begins_as_the_tokenizer_wants_it_and_goes_on_without_a_space() {
    let folder = tokenizers::sentence_piece_with(&["▁<PRE>", "▁<SUF>", "▁<MID>"]);
    let config = json!({"bos_token": "<s>"});
    tokenizers::write(folder.path(), "tokenizer_config.json", &config);
    let model = ChatModel::load(folder.path(), "org/model").unwrap();
    let rendered = filled(&model, gap("he", "ll")).unwrap();
    let tokenizer = model.tokenizer();
    let ids = |texts: &[&str]| -> Vec<u32> {
        texts
            .iter()
            .map(|text| tokenizer.token_id(text).unwrap())
            .collect()
    };
    assert_eq!(
        rendered.tokens,
        ids(&["<s>", "▁<PRE>", "▁h", "e", "▁<SUF>", "ll", "▁<MID>"])
    );
}

#[test]
fn models_without_the_tokens_say_so() {
    for added in [
        &[][..],
        &["<|fim_prefix|>", "<|fim_suffix|>"],
        &["[PREFIX]"],
    ] {
        let model = model(added);
        assert!(!model.traits().fills_in);
        match filled(&model, gap("a", "z")).unwrap_err() {
            InferenceError::Unsupported { param, reason } => {
                assert_eq!(param, "input_suffix");
                assert!(reason.contains("fill-in-the-middle"), "{reason}");
                assert!(reason.contains("org/model"), "{reason}");
            }
            error => panic!("{error}"),
        }
    }
}
