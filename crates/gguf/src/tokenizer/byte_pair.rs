//! Byte-level BPE (`gpt2` in GGUF): vocabulary and merges are in the file.

use serde_json::{Value, json};

use super::{Special, Vocabulary, pre_tokenizer};
use crate::{Error, metadata::Metadata};

pub(super) fn build(
    metadata: &Metadata,
    vocabulary: &Vocabulary<'_>,
    special: &mut Special,
) -> Result<Value, Error> {
    let family = pre_tokenizer::of(metadata.string("tokenizer.ggml.pre")?)?;
    special.decide(metadata, family.adds_bos)?;
    let merges = metadata
        .strings("tokenizer.ggml.merges")?
        .ok_or_else(|| Error::MissingKey("tokenizer.ggml.merges".into()))?;
    let merges = merges
        .into_iter()
        .map(|merge| {
            merge
                .split_once(' ')
                .map(|(left, right)| json!([left, right]))
                .ok_or_else(|| Error::Damaged(format!("the merge `{merge}`")))
        })
        .collect::<Result<Vec<Value>, Error>>()?;
    let byte_level = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true
    });
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": vocabulary.list_added(),
        "normalizer": family.normalizer,
        "pre_tokenizer": family.pre_tokenizer,
        "post_processor": special.template(vocabulary),
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": family.ignore_merges,
            "vocab": vocabulary.map(),
            "merges": merges
        }
    }))
}
