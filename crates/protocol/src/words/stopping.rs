//! When an answer ends.

use serde_json::{Value, json};

use super::{
    Api::{Chat, Completions, Infill, Messages, OllamaChat, OllamaGenerate, Responses},
    GENERATING, OLLAMA, OPENAI, Word,
    value::{is_empty, is_false, is_not_positive, is_true, is_zero},
    word,
};

const OF_OPENAI: &str = "only /v1/chat/completions, completions and responses have it";

pub(super) const WORDS: &[Word] = &[
    word(&[
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "max_new_tokens",
        "max_tokens_to_sample",
        "n_predict",
    ])
    .read(
        &[Chat, Completions, Infill],
        &["max_completion_tokens", "max_tokens"],
    )
    .read(&[Responses], &["max_output_tokens"])
    .read(&[Messages], &["max_tokens"])
    .read(OLLAMA, &["options.num_predict"]),
    // Ollama's word, with which 0 is no limit, too.
    word(&["num_predict"])
        .rewritten(GENERATING, |tokens| {
            let is_unlimited = tokens.as_f64() == Some(0.0);
            let tokens = if is_unlimited {
                json!(-1)
            } else {
                tokens.clone()
            };
            Ok(vec![("max_tokens", tokens)])
        })
        .read(OLLAMA, &["options.num_predict"]),
    word(&["max_length", "min_length", "max_gen_len"])
        .refused(
            GENERATING,
            "the tokens of the answer alone are counted, as `max_tokens`",
        )
        .unless(is_zero),
    word(&["min_tokens", "min_new_tokens"])
        .read(OPENAI, &["min_tokens"])
        .refused(&[Messages, OllamaChat, OllamaGenerate], OF_OPENAI)
        .unless(is_zero),
    word(&["stop_sequences"])
        .read(OPENAI, &["stop"])
        .read(&[Messages], &["stop_sequences"])
        .read(OLLAMA, &["options.stop"]),
    word(&["stop", "stop_sequence", "stop_strings", "stopping_strings"])
        .read(OPENAI, &["stop"])
        .rewritten(&[Messages], |stop| {
            let sequences = match stop {
                Value::String(text) => json!([text]),
                stop => stop.clone(),
            };
            Ok(vec![("stop_sequences", sequences)])
        })
        .read(OLLAMA, &["options.stop"]),
    word(&["stop_token_ids"])
        .read(OPENAI, &["stop_token_ids"])
        .refused(&[Messages, OllamaChat, OllamaGenerate], OF_OPENAI)
        .unless(is_empty),
    word(&["ignore_eos", "ban_eos_token"])
        .read(OPENAI, &["ignore_eos"])
        .refused(&[Messages, OllamaChat, OllamaGenerate], OF_OPENAI)
        .unless(is_false),
    word(&["stop_regex"])
        .refused(GENERATING, "an answer ends at a text; use `stop`")
        .unless(is_empty),
    word(&["include_stop_str_in_output", "no_stop_trim"])
        .refused(GENERATING, "stop sequences are never part of the output")
        .unless(is_false),
    word(&["max_time", "t_max_predict_ms"])
        .refused(
            GENERATING,
            "an answer is not ended by the clock; end the request",
        )
        .harmless(
            &[Infill],
            "editors send it with each request, and a limit of tokens too",
        )
        .unless(is_not_positive),
    word(&["n_indent"])
        .refused(GENERATING, "an answer does not end by its indentation")
        .read(&[Infill], &["n_indent"])
        .unless(is_zero),
    word(&["shift"])
        .read(OLLAMA, &["shift"])
        .refused(
            super::V1,
            "a full context ends the answer with the reason `length`",
        )
        .unless(is_false),
    word(&["exponential_decay_length_penalty"])
        .refused(GENERATING, "the end of an answer is not made likelier")
        .unless(is_empty),
    word(&["skip_special_tokens"])
        .refused(GENERATING, "special tokens are never part of the output")
        .unless(is_true),
    word(&["spaces_between_special_tokens", "detokenize"])
        .refused(GENERATING, "an answer is text as the tokenizer writes it")
        .unless(is_true),
];
