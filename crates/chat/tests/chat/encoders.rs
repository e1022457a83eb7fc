//! What encoders read: special tokens, pairs, prompts and limits.

use std::path::Path;

use macmlx_chat::{AnswerTokens, ChatModel, EncoderTokenizer, EncoderTokens, Tokenizer};
use macmlx_inference::{InferenceError, ModelTask, Overflow};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tokenizers::{self, write};

const SPECIALS: [&str; 4] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];
const WORDS: [&str; 8] = ["is", "cat", "a", "##s", "dog", ".", "n't", "pre"];

/// A `WordPiece` tokenizer as BERT has it. Ids: [`SPECIALS`], then [`WORDS`].
fn word_piece() -> TempDir {
    let vocab: serde_json::Map<String, Value> = SPECIALS
        .iter()
        .chain(&WORDS)
        .enumerate()
        .map(|(id, text)| ((*text).to_owned(), id.into()))
        .collect();
    let special = |id: usize| json!({"id": SPECIALS[id], "ids": [id], "tokens": [SPECIALS[id]]});
    let cls = || json!({"SpecialToken": {"id": "[CLS]", "type_id": 0}});
    let sep = |type_id: u32| json!({"SpecialToken": {"id": "[SEP]", "type_id": type_id}});
    let text = |id: &str, type_id: u32| json!({"Sequence": {"id": id, "type_id": type_id}});
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "tokenizer.json",
        &json!({
            "version": "1.0",
            "truncation": {
                "direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0
            },
            "padding": null,
            "added_tokens": (0..4).map(|id| json!({
                "id": id, "content": SPECIALS[id], "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true
            })).collect::<Vec<_>>(),
            "normalizer": {
                "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [cls(), text("A", 0), sep(0)],
                "pair": [cls(), text("A", 0), sep(0), text("B", 1), sep(1)],
                "special_tokens": {"[CLS]": special(2), "[SEP]": special(3)}
            },
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
            "model": {
                "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": vocab
            }
        }),
    );
    let config = json!({"model_type": "bert", "architectures": ["BertModel"]});
    write(folder.path(), "config.json", &config);
    folder
}

fn load(folder: &Path, task: ModelTask, limit: u32) -> Result<EncoderTokenizer, InferenceError> {
    let chat = ChatModel::load(folder, "m").unwrap();
    EncoderTokenizer::load(folder, "m", task, &chat, limit)
}

fn refusal<T: std::fmt::Debug>(result: Result<T, InferenceError>) -> (String, String) {
    match result.unwrap_err() {
        InferenceError::InvalidRequest { param, message } => (param.unwrap(), message),
        other => panic!("{other}"),
    }
}

fn reason(result: Result<EncoderTokenizer, InferenceError>) -> String {
    match result.unwrap_err() {
        InferenceError::ModelLoad { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn texts_get_special_tokens_and_fit() {
    let folder = word_piece();
    let encoder = load(folder.path(), ModelTask::Embed, 6).unwrap();
    let text = |text: &str, overflow| Ok(encoder.text(text, None, overflow, "input[3]")?.ids);
    assert_eq!(text("", Overflow::Refuse), Ok(vec![2, 3]));
    // The limit in tokenizer.json is not the model's.
    assert_eq!(
        text("A cat is a", Overflow::Refuse),
        Ok(vec![2, 6, 5, 4, 6, 3])
    );
    assert_eq!(
        text("a cat is a dogs", Overflow::Truncate),
        Ok(vec![2, 6, 5, 4, 6, 3])
    );
    let (param, message) = refusal(text("a cat is a dogs", Overflow::Refuse));
    assert_eq!(param, "input[3]");
    assert!(message.contains("input[3]") && message.contains('8') && message.contains('6'));
}

#[test]
fn ids_are_taken_as_they_are() {
    let folder = word_piece();
    let encoder = load(folder.path(), ModelTask::Embed, 3).unwrap();
    let tokens = |ids: &[u32], overflow| encoder.tokens(ids.to_vec(), None, overflow, "input");
    let taken = |ids: &[u32]| EncoderTokens {
        ids: ids.to_vec(),
        second_segment: None,
    };
    assert_eq!(tokens(&[5, 6], Overflow::Refuse), Ok(taken(&[5, 6])));
    assert_eq!(
        tokens(&[5, 6, 7, 8], Overflow::Truncate),
        Ok(taken(&[5, 6, 7]))
    );
    assert_eq!(refusal(tokens(&[5, 6, 7, 8], Overflow::Refuse)).0, "input");
    assert_eq!(refusal(tokens(&[], Overflow::Refuse)).0, "input");
}

#[test]
fn pairs_mark_the_document_and_lose_its_end() {
    let folder = word_piece();
    let encoder = load(folder.path(), ModelTask::Rerank, 8).unwrap();
    assert_eq!(encoder.answers(), None);
    let documents = [
        "dogs".to_owned(),
        String::new(),
        "a cat is a dog".to_owned(),
    ];
    let pairs = encoder
        .pairs("a cat", &documents, None, None, Overflow::Truncate)
        .unwrap();
    let pair = |ids: &[u32]| EncoderTokens {
        ids: ids.to_vec(),
        second_segment: Some(5 - 1),
    };
    assert_eq!(
        pairs,
        [
            pair(&[2, 6, 5, 3, 8, 7, 3]),
            pair(&[2, 6, 5, 3, 3]),
            pair(&[2, 6, 5, 3, 6, 5, 4, 3]),
        ]
    );
    let (param, message) =
        refusal(encoder.pairs("a cat", &documents, None, None, Overflow::Refuse));
    assert_eq!(param, "documents[2]");
    assert!(message.contains("10") && message.contains('8'), "{message}");
    let long = encoder.pairs(
        "a cat is a dog",
        &documents[..1],
        None,
        None,
        Overflow::Truncate,
    );
    let (param, message) = refusal(long);
    assert_eq!(param, "query");
    assert!(message.contains('8'), "{message}");
}

#[test]
fn a_client_may_have_less_read() {
    let folder = word_piece();
    let encoder = load(folder.path(), ModelTask::Embed, 6).unwrap();
    let text = |most| encoder.text("a cat is a dogs", Some(most), Overflow::Refuse, "input");
    assert_eq!(text(4).unwrap().ids, [2, 6, 5, 3]);
    assert_eq!(text(6).unwrap().ids, [2, 6, 5, 4, 6, 3]);
    // What the client asks for is still too long for the model.
    assert_eq!(refusal(text(7)).0, "input");
    assert_eq!(refusal(text(2)).0, "input");
    let tokens = |most| encoder.tokens(vec![5, 6, 7], Some(most), Overflow::Refuse, "input");
    assert_eq!(tokens(2).unwrap().ids, [5, 6]);
    assert_eq!(tokens(9).unwrap().ids, [5, 6, 7]);
    let encoder = load(folder.path(), ModelTask::Rerank, 8).unwrap();
    let documents = ["a cat is".to_owned()];
    let pair = |most, pair_most| {
        encoder.pairs("a cat", &documents, most, Some(pair_most), Overflow::Refuse)
    };
    assert_eq!(pair(None, 7).unwrap()[0].ids, [2, 6, 5, 3, 6, 5, 3]);
    assert_eq!(pair(Some(1), 7).unwrap()[0].ids, [2, 6, 5, 3, 6, 3]);
    assert_eq!(pair(None, 99).unwrap()[0].ids, [2, 6, 5, 3, 6, 5, 4, 3]);
    assert_eq!(refusal(pair(None, 5)).0, "documents");
}

#[test]
fn a_default_prompt_stands_before_texts() {
    let folder = word_piece();
    let prompts = |name: Value| json!({"prompts": {"query": "a dog is ", "document": ""}, "default_prompt_name": name});
    let file = "config_sentence_transformers.json";
    let ids = |name: Value| {
        write(folder.path(), file, &prompts(name));
        let encoder = load(folder.path(), ModelTask::Embed, 99).unwrap();
        encoder
            .text("cat", None, Overflow::Refuse, "input")
            .unwrap()
            .ids
    };
    assert_eq!(ids(json!("query")), [2, 6, 8, 4, 5, 3]);
    assert_eq!(ids(json!("document")), [2, 5, 3]);
    assert_eq!(ids(Value::Null), [2, 5, 3]);
    write(folder.path(), file, &prompts(json!("clustering")));
    let reason = reason(load(folder.path(), ModelTask::Embed, 99));
    assert!(reason.contains("clustering"), "{reason}");
}

/// A byte-level tokenizer that ends a text, in the folder of a Qwen3 model with the words that its
/// rerankers answer with.
fn qwen3() -> TempDir {
    let folder = tokenizers::byte_level();
    let path = folder.path().join("tokenizer.json");
    let mut file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for (index, word) in ["yes", "no"].into_iter().enumerate() {
        let mut token = file["added_tokens"][9].clone();
        token["id"] = json!(token["id"].as_u64().unwrap() + 1 + index as u64);
        token["content"] = json!(word);
        file["added_tokens"].as_array_mut().unwrap().push(token);
    }
    write(folder.path(), "tokenizer.json", &file);
    let config = json!({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]});
    write(folder.path(), "config.json", &config);
    folder
}

fn detokenized(folder: &Path, pairs: &[EncoderTokens]) -> Vec<String> {
    let tokenizer = Tokenizer::load(folder, "m").unwrap();
    pairs
        .iter()
        .map(|pair| tokenizer.detokenize(&pair.ids))
        .collect()
}

#[test]
fn qwen3_is_asked_in_a_conversation() {
    let folder = qwen3();
    let documents = [
        "Berlin.".to_owned(),
        "Paris, the capital of France.".to_owned(),
    ];
    let wide = load(folder.path(), ModelTask::Rerank, 10_000).unwrap();
    let pairs = wide
        .pairs("Which city?", &documents, None, None, Overflow::Refuse)
        .unwrap();
    let before = "<|im_start|>system\nJudge whether the Document meets the requirements based on the \
                  Query and the Instruct provided. Note that the answer can only be \"yes\" or \
                  \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web search query, \
                  retrieve relevant passages that answer the query\n<Query>: Which city?\n\
                  <Document>: ";
    let after = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
    let whole = |document: &str| format!("{before}{document}{after}");
    assert_eq!(
        detokenized(folder.path(), &pairs),
        [whole(&documents[0]), whole(&documents[1])]
    );
    let limit = pairs[0].ids.len() as u32;
    let narrow = load(folder.path(), ModelTask::Rerank, limit).unwrap();
    let pairs = narrow
        .pairs("Which city?", &documents, None, None, Overflow::Truncate)
        .unwrap();
    assert_eq!(pairs[1].ids.len() as u32, limit);
    let cut = &detokenized(folder.path(), &pairs)[1];
    assert!(
        cut.starts_with(&format!("{before}Paris")) && cut.ends_with(after),
        "{cut}"
    );
    let tokenizer = Tokenizer::load(folder.path(), "m").unwrap();
    let token = |text| tokenizer.token_id(text).unwrap();
    let answers = AnswerTokens {
        yes: token("yes"),
        no: token("no"),
    };
    assert_eq!(wide.answers(), Some(answers));
}

#[test]
fn a_template_for_pairs_and_a_score_module_have_the_word() {
    let folder = qwen3();
    let template = "{%- set query = messages | selectattr('role', 'eq', 'query') \
                    | map(attribute='content') | first %}\
                    {%- set document = messages | selectattr('role', 'eq', 'document') \
                    | map(attribute='content') | first %}\
                    {{ messages | selectattr('role', 'eq', 'system') | map(attribute='content') \
                    | first | default('rank') }}: {{ query }} <- {{ document }}\
                    {% if add_generation_prompt %}!{% endif %}";
    std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let score = json!([
        {"type": "sentence_transformers.base.modules.transformer.Transformer", "path": ""},
        {"type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore",
         "path": "1_LogitScore"}
    ]);
    write(folder.path(), "modules.json", &score);
    let module = folder.path().join("1_LogitScore");
    std::fs::create_dir(&module).unwrap();
    write(
        &module,
        "config.json",
        &json!({"true_token_id": 7, "false_token_id": 5}),
    );
    let texts = |folder: &Path| {
        let encoder = load(folder, ModelTask::Rerank, 99).unwrap();
        let pairs = encoder
            .pairs("q", &["d".to_owned()], None, None, Overflow::Refuse)
            .unwrap();
        (encoder.answers(), detokenized(folder, &pairs).remove(0))
    };
    let answers = Some(AnswerTokens { yes: 7, no: 5 });
    assert_eq!(texts(folder.path()), (answers, "rank: q <- d!".into()));
    let prompts = json!({"prompts": {"query": "sort"}, "default_prompt_name": "query"});
    write(folder.path(), "config_sentence_transformers.json", &prompts);
    assert_eq!(texts(folder.path()).1, "sort: q <- d!");
    write(
        &module,
        "config.json",
        &json!({"true_token_id": 7, "false_token_id": null}),
    );
    let reason = reason(load(folder.path(), ModelTask::Rerank, 99));
    assert!(reason.contains("false_token_id"), "{reason}");
}

#[test]
fn a_head_needs_no_answer_tokens() {
    let folder = qwen3();
    let config = json!({
        "model_type": "qwen3", "architectures": ["Qwen3ForSequenceClassification"]
    });
    write(folder.path(), "config.json", &config);
    let encoder = load(folder.path(), ModelTask::Rerank, 999).unwrap();
    assert_eq!(encoder.answers(), None);
    let pairs = encoder
        .pairs("q", &["d".to_owned()], None, None, Overflow::Refuse)
        .unwrap();
    assert!(detokenized(folder.path(), &pairs)[0].contains("<Query>: q\n<Document>: d<|im_end|>"));
}

#[test]
fn word_pieces_become_text() {
    let folder = word_piece();
    let tokenizer = Tokenizer::load(folder.path(), "m").unwrap();
    let ids = tokenizer.encode("a cats is n't pre.", false).unwrap();
    let is_one = tokenizer.token_id("n't").unwrap();
    assert!(!ids.contains(&is_one), "punctuation is split off");
    assert_eq!(
        tokenizer.detokenize(&[6, 5, 7, 4, 10, 8, 9]),
        "a cats isn't dog."
    );
    assert_eq!(tokenizer.detokenize(&[2, 6, 5, 3]), "[CLS] a cat[SEP]");
}
